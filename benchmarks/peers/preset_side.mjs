// The side of presets.py that runs beside the Gemini CLI: node preset_side.mjs PACKAGE IN OUT
import { readFileSync, writeFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';

const [folder, source, target] = process.argv.slice(2);
const { findCompressSplitPoint } = await import(
  pathToFileURL(`${folder}/dist/src/context/chatCompressionService.js`).href
);
const told = readFileSync(source, 'utf8').split('\n').filter(Boolean).map((line) => {
  const { messages } = JSON.parse(line);
  const kept = {};
  for (let n = findCompressSplitPoint(messages, 0.7); n < messages.length; n++) kept[n] = null;
  return JSON.stringify({ kept });
});
writeFileSync(target, told.join('\n') + '\n');
