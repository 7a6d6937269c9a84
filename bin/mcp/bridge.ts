import type { Readable, Writable } from 'node:stream';
import type { JSONRPCMessage, JSONRPCRequest, RequestId } from '@modelcontextprotocol/sdk/types.js';
import { postTo, type RunningService, reasonOf } from '../service/runningService.js';

/** JSON-RPC's code of a server's own errors. */
const SERVER_ERROR = -32_000;

/**
 * Carries messages of the Model Context Protocol between input and output and POST /mcp of a service, until the input
 * ends. The tools are therefore those of the service, whatever version it has.
 */
export async function bridge(service: RunningService, input: Readable, output: Writable): Promise<void> {
  const { StdioServerTransport } = await import('@modelcontextprotocol/sdk/server/stdio.js');
  const transport = new StdioServerTransport(input, output);
  const open = new Map<RequestId, { abort: AbortController; done: Promise<void> }>();
  /** The version that the service agreed to. */
  let version: string | undefined;

  const carry = async (message: JSONRPCRequest, signal: AbortSignal) => {
    const answer = await ask(service, message, version, signal).catch((error: unknown) =>
      failure(message.id, error instanceof Error ? error.message : 'the service cannot be reached'),
    );
    if (signal.aborted) return;
    const agreed = 'result' in answer ? answer.result.protocolVersion : undefined;
    if (typeof agreed === 'string') version = agreed;
    await transport.send(answer);
  };

  transport.onmessage = (message) => {
    if (!('method' in message)) return;
    if (!('id' in message)) {
      // The service keeps no session: of notifications only the end of a request matters.
      if (message.method === 'notifications/cancelled')
        open.get(message.params?.requestId as RequestId)?.abort.abort();
      return;
    }
    const abort = new AbortController();
    const done = carry(message, abort.signal).finally(() => open.delete(message.id));
    open.set(message.id, { abort, done });
  };
  transport.onerror = (error) => {
    void transport.send({
      jsonrpc: '2.0',
      error: {
        code: -32_700,
        message: `a line is no message of the protocol: ${error.message.slice(0, 200)}`,
      },
    } as JSONRPCMessage);
  };
  const ended = new Promise<void>((resolve) => {
    input.once('end', resolve);
    input.once('close', resolve);
  });
  await transport.start();
  await ended;
  await Promise.all([...open.values()].map(({ done }) => done));
  await transport.close();
}

async function ask(
  service: RunningService,
  message: JSONRPCRequest,
  version: string | undefined,
  signal: AbortSignal,
): Promise<JSONRPCMessage> {
  const answer = await postTo(service, {
    path: '/mcp',
    type: 'application/json',
    body: JSON.stringify(message),
    headers: {
      accept: 'application/json, text/event-stream',
      ...(version === undefined ? {} : { 'mcp-protocol-version': version }),
    },
    signal,
  });
  if (answer.status === 200) return JSON.parse(answer.text) as JSONRPCMessage;
  return failure(message.id, reasonOf(answer));
}

function failure(id: RequestId, message: string): JSONRPCMessage {
  return { jsonrpc: '2.0', id, error: { code: SERVER_ERROR, message } };
}
