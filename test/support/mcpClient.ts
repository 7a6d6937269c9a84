import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js';
import { PROJECT_ROOT } from '../../platform/projectRoot.js';

/** The ways in which an assistant reaches the tools. */
export const MCP_WAYS = ['http', 'stdio'] as const;
export type McpWay = (typeof MCP_WAYS)[number];

/** The official client, connected to a service over HTTP, or to `trueup mcp` as a process. */
export async function connectMcp(way: McpWay, baseUrl: string, key: string): Promise<Client> {
  const client = new Client({ name: 'test', version: '1.0.0' });
  // The SDK's own types contradict each other under exactOptionalPropertyTypes.
  await client.connect(transportOf(way, baseUrl, key) as Transport);
  return client;
}

function transportOf(way: McpWay, baseUrl: string, key: string) {
  if (way === 'http')
    return new StreamableHTTPClientTransport(new URL('/mcp', baseUrl), {
      requestInit: { headers: { authorization: `Bearer ${key}` } },
    });
  return new StdioClientTransport({
    command: process.execPath,
    args: ['--import', 'tsx', join(PROJECT_ROOT, 'bin/trueup.ts'), 'mcp'],
    cwd: PROJECT_ROOT,
    env: { PATH: process.env.PATH ?? '', TRUEUP_URL: baseUrl, TRUEUP_API_KEY: key },
    stderr: 'inherit',
  });
}

/** A tool's answer. The client checks its structured content against the tool's schema. */
export async function callMcp(
  client: Client,
  name: string,
  given: Record<string, unknown> = {},
): Promise<CallToolResult> {
  return (await client.callTool({ name, arguments: given })) as CallToolResult;
}

/** The text of an answer. */
export const textOf = ({ content }: CallToolResult): string =>
  content[0]?.type === 'text' ? content[0].text : '';
