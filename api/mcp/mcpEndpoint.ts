import { z } from 'zod';
import { defineEndpoint } from '../endpoint.js';
import { answerMessage } from './protocol.js';

const messageId = z.union([z.string().max(256), z.int()]);

/** One message; lists of messages are no part of the protocol any more. */
const messageBody = z
  .strictObject({
    jsonrpc: z.literal('2.0', { error: 'must be 2.0' }),
    id: messageId.optional().meta({ description: 'Absent: a notification' }),
    method: z.string().max(256).optional(),
    params: z.looseObject({}).optional(),
    result: z.looseObject({}).optional(),
    error: z.looseObject({}).optional(),
  })
  .meta({ id: 'McpMessage', description: 'A message of the Model Context Protocol (JSON-RPC 2.0)' });

const answerSchema = z
  .strictObject({
    jsonrpc: z.literal('2.0'),
    id: messageId.nullable(),
    result: z.looseObject({}).optional(),
    error: z.looseObject({ code: z.int(), message: z.string() }).optional(),
  })
  .meta({ id: 'McpAnswer' });

/** The Model Context Protocol over HTTP. Each tool applies the access rules of its read. */
export const mcpEndpoint = defineEndpoint({
  operationId: 'mcp',
  method: 'post',
  path: '/mcp',
  tag: 'Ask',
  summary: 'Model Context Protocol: questions of an assistant',
  description:
    'Streamable HTTP without sessions: one message a request, answered as JSON. Tools read what the key may read, and answer as the endpoints of the API do. A refused call is a result with isError; docs/ask.md lists the tools.',
  access: { scope: 'any', workspace: 'own' },
  limit: 'read',
  idempotency: 'ignored',
  query: z.object({}),
  body: messageBody,
  responses: {
    200: { description: 'The response to a request', schema: answerSchema },
    202: { description: 'A notification was received' },
    400: {
      description: 'A message or a version of the protocol that is not understood',
      schema: answerSchema,
    },
  },
  problems: ['invalid_parameter'],
  handle: answerMessage,
});
