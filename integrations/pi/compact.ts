// compact for pi: a compaction asks no model, its summary is a digest, and what it leaves out can be looked up.
// Where the program is missing or fails, pi compacts by itself.
import { execFile } from "node:child_process";
import { dirname, join } from "node:path";
import type { ExtensionAPI } from "@mariozechner/pi-coding-agent";
import { Type } from "typebox";

const PROGRAM = process.env.COMPACTOR ?? "compactor";
const MOST_CHARS = 20_000;

function run(args: string[], signal?: AbortSignal, input = ""): Promise<string> {
	return new Promise((resolve, reject) => {
		const done = (error: any, out: string, err: string) =>
			error && !(error.code === 1 && !err) ? reject(new Error(err.trim() || error.message)) : resolve(out);
		const child = execFile(PROGRAM, args, { signal, timeout: 60_000, maxBuffer: 1 << 26 }, done);
		child.stdin?.on("error", () => {}); // it ended before it read all: its exit code tells
		child.stdin?.end(input);
	});
}

export default function (pi: ExtensionAPI) {
	// Beside the sessions, as `compact --append` has it; without a file, in the program's own place.
	const archive = (ctx: any): string[] => {
		const file = ctx.sessionManager.getSessionFile();
		return file ? ["--archive-dir", join(dirname(file), ".transcripts")] : [];
	};

	pi.on("session_before_compact", async (event, ctx) => {
		const { preparation, branchEntries, customInstructions, signal } = event;
		const header = ctx.sessionManager.getHeader();
		if (!header || signal.aborted) return;
		try {
			const args = ["digest", "-", "--format", "pi", "--json"];
			args.push("--but-newest", String(preparation.settings.keepRecentTokens), ...archive(ctx));
			const file = ctx.sessionManager.getSessionFile();
			if (file) args.push("--source", file);
			if (customInstructions) args.push("--focus", customInstructions);
			const lines = [header, ...branchEntries].map((entry) => `${JSON.stringify(entry)}\n`);
			const digest = JSON.parse(await run(args, signal, lines.join("")));
			const first = digest.first_kept?.id;
			if (!digest.summary || !branchEntries.some((entry) => entry.id === first)) return; // nothing that pi can use
			ctx.ui.notify(`compact: ${preparation.tokensBefore} tokens, no model was asked`, "info");
			const { tokensBefore } = preparation;
			return { compaction: { summary: digest.summary, firstKeptEntryId: first, tokensBefore, details: {} } };
		} catch (error) {
			ctx.ui.notify(`compact failed, pi compacts itself: ${error instanceof Error ? error.message : error}`, "warning");
		}
	});

	for (const [name, command, description] of [
		["search_history", "search", "Find records that were summarised away, by words that all must occur. Gives ids."],
		["expand_history", "expand", "Print such records in full: ids of search_history, or a summary's hash and [12] [4-9]."],
	] as const) {
		pi.registerTool({
			name,
			label: name,
			description,
			parameters: Type.Object({ [command === "search" ? "query" : "ids"]: Type.String() }),
			async execute(_id, params: any, signal, _update, ctx) {
				const words = String(params.query ?? params.ids).split(/\s+/).filter(Boolean);
				const out = await run([command, ...archive(ctx), "--", ...words], signal);
				return { content: [{ type: "text", text: out.slice(0, MOST_CHARS) || "Nothing found." }], details: {} };
			},
		});
	}
}
