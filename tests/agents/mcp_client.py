"""Speaks with a server by the protocol's official client, by a Python that has it. Exit code 77: it has not."""

import asyncio
import json
import os
import sys

try:
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client
except ImportError:
    sys.exit(77)


async def main() -> None:
    server = StdioServerParameters(command=sys.argv[1], args=sys.argv[2:], env=dict(os.environ))
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        tools = (await session.list_tools()).tools
        found = await session.call_tool("search", {"query": "harbour"})
        refused = await session.call_tool("expand", {"ids": ["nonsense"]})
        is_error = getattr(refused, "isError", None) or getattr(refused, "is_error", False)
        text = found.content[0].text
        print(json.dumps({"tools": [tool.name for tool in tools], "found": "harbour" in text, "error": is_error}))


asyncio.run(main())
