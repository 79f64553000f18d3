// compact for opencode: its compaction is told what to leave to the digest, which stands behind the summary in every
// request after it. Where the program is missing or fails, opencode compacts as ever.
import type { Plugin } from "@opencode-ai/plugin"
import { execFileSync } from "node:child_process"
import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { homedir } from "node:os"
import { join } from "node:path"

const PROGRAM = process.env.COMPACTOR ?? "compactor"
const STATE = join(process.env.XDG_STATE_HOME ?? join(homedir(), ".local/state"), "compact/opencode")
const DATA = join(process.env.XDG_DATA_HOME ?? join(homedir(), ".local/share"), "compact/archive")
const STEERING =
  "A digest of this session (files, commands, exact values) is placed after your summary: leave lists of those out. " +
  "Say what was decided and why, what is done, and what comes next."
const digests = new Map<string, string>()

const noteOf = (sessionID: string) => join(STATE, `${sessionID.replace(/\W/g, "_")}.md`)

function digestOf(sessionID: string): string {
  try {
    if (!digests.has(sessionID)) digests.set(sessionID, readFileSync(noteOf(sessionID), "utf8"))
  } catch {
    digests.set(sessionID, "")
  }
  return digests.get(sessionID) ?? ""
}

export const Compact: Plugin = async ({ client }) => ({
  "experimental.session.compacting": async ({ sessionID }, output) => {
    try {
      const info = (await client.session.get({ path: { id: sessionID } })).data
      const messages = (await client.session.messages({ path: { id: sessionID } })).data
      const args = ["digest", "-", "--chars", "9500", "--archive-dir", DATA, "--source", `opencode:${sessionID}`]
      const input = JSON.stringify({ info, messages })
      const digest = execFileSync(PROGRAM, args, { encoding: "utf8", input, timeout: 10_000, maxBuffer: 1 << 26 })
      if (!digest) return
      mkdirSync(STATE, { recursive: true, mode: 0o700 })
      writeFileSync(noteOf(sessionID), digest, { mode: 0o600 })
      digests.set(sessionID, digest)
      output.context.push(STEERING)
    } catch (error) {
      console.error(`compact: ${error}`)
    }
  },
  "experimental.chat.messages.transform": async (_input, { messages }) => {
    const at = messages.findLastIndex((m: any) => m.info.role === "assistant" && m.info.summary)
    const digest = at >= 0 && digestOf(messages[at].info.sessionID)
    const part: any = digest && messages[at].parts.find((p: any) => p.type === "text")
    if (part && !part.text.includes("[compact/1 ")) part.text += `\n\n${digest}`
  },
})
