import type { ApiDeps } from '../deps.js';
import type { EndpointResponse } from '../endpoint.js';
import { type CarryingRequest, callTool } from './callTool.js';
import { findTool, listTools, TOOLS } from './tools.js';

/** For the model that uses the tools. */
const INSTRUCTIONS = [
  'Trueup knows what calls of language models cost, what providers billed for them, and what was charged too much.',
  'All tools only read. Amounts are US dollars; days and months are UTC; a period without an end reaches to now.',
  'Quote amounts as answered; do not estimate what a tool can answer.',
].join(' ');

/** Loads the protocol's library once it is needed, because a start of the service does not need it. */
async function loadLibrary() {
  const [{ Server }, { WebStandardStreamableHTTPServerTransport }, types, { AjvJsonSchemaValidator }] =
    await Promise.all([
      import('@modelcontextprotocol/sdk/server/index.js'),
      import('@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js'),
      import('@modelcontextprotocol/sdk/types.js'),
      import('@modelcontextprotocol/sdk/validation/ajv'),
    ]);
  // One validator for all servers, since making one takes milliseconds. Only questions to users need it.
  return { Server, WebStandardStreamableHTTPServerTransport, types, validator: new AjvJsonSchemaValidator() };
}

type Library = Awaited<ReturnType<typeof loadLibrary>>;
let library: Promise<Library> | undefined;

/** A server for one message, because the transport is stateless. */
function serverOf({ Server, types, validator }: Library, request: CarryingRequest, deps: ApiDeps) {
  const server = new Server(
    { name: 'trueup', title: 'Trueup', version: deps.settings.version },
    { capabilities: { tools: {} }, instructions: INSTRUCTIONS, jsonSchemaValidator: validator },
  );
  server.setRequestHandler(types.ListToolsRequestSchema, () => ({ tools: [...listTools()] }));
  server.setRequestHandler(types.CallToolRequestSchema, async ({ params }) => {
    const tool = findTool(params.name);
    if (!tool) {
      const names = TOOLS.map(({ name }) => name).join(', ');
      throw new types.McpError(
        types.ErrorCode.InvalidParams,
        `name: there is no tool ${params.name.slice(0, 100)}; call one of ${names}`,
      );
    }
    return { ...(await callTool(tool, params.arguments ?? {}, request, deps)) };
  });
  return server;
}

/**
 * Answers one message of the protocol (streamable HTTP, stateless, JSON): a request with its response, a notification
 * with 202.
 */
export async function answerMessage(request: CarryingRequest, deps: ApiDeps): Promise<EndpointResponse> {
  library ??= loadLibrary();
  const loaded = await library;
  const server = serverOf(loaded, request, deps);
  const transport = new loaded.WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true });
  await server.connect(transport);
  try {
    const version = request.header('mcp-protocol-version');
    const headers = {
      // The answer is JSON whatever the client accepts; every client of the protocol reads it.
      accept: 'application/json, text/event-stream',
      'content-type': 'application/json',
      ...(version === undefined ? {} : { 'mcp-protocol-version': version }),
    };
    const sent = new Request(`${deps.settings.baseUrl()}/mcp`, { method: 'POST', headers, body: '{}' });
    const answer = await transport.handleRequest(sent, { parsedBody: request.body });
    const text = await answer.text();
    return { status: answer.status, body: text === '' ? undefined : JSON.parse(text) };
  } finally {
    await server.close();
  }
}
