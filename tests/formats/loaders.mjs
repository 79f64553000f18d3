// The AI SDK's own hand, as loaders.py is that of the Python libraries: makes a chat, and loads one.
import { convertToModelMessages, validateUIMessages } from 'ai';

const long = 'The plane is dull, the board is long and the grain runs the wrong way. '.repeat(12);
const made = [];
for (let turn = 0; turn < 8; turn++) {
  const call = { type: 'tool-look', toolCallId: `c${turn}`, state: 'output-available', input: { turn } };
  made.push(
    { id: `u${turn}`, role: 'user', parts: [{ type: 'text', text: `Question ${turn}: which plane?` }] },
    {
      id: `a${turn}`,
      role: 'assistant',
      parts: [
        { type: 'step-start' },
        { ...call, output: `Result ${turn}: ${long}` },
        { type: 'step-start' },
        { type: 'text', text: `Answer ${turn}: the long one.` },
      ],
    },
  );
}
const chat = { id: 'chat', messages: await validateUIMessages({ messages: made }) };
console.log(JSON.stringify(chat));

let input = '';
for await (const piece of process.stdin) input += piece;
const messages = await validateUIMessages({ messages: JSON.parse(input).messages });
const text = JSON.stringify(await convertToModelMessages(messages));
console.log(JSON.stringify({ messages: messages.length, text }));
