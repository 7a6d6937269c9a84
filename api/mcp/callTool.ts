import type { z } from 'zod';
import { DomainError } from '../../domain/errors.js';
import type { ApiDeps } from '../deps.js';
import type { EndpointRequest } from '../endpoint.js';
import { assertAllowed } from '../pipeline/auth.js';
import { type Problem, presentProblem } from '../problem.js';
import { validate } from '../query.js';
import { argumentsOf, type Tool } from './tools.js';

/** The request that carries the call: its caller and its limits hold for the tool. */
export type CarryingRequest = EndpointRequest<unknown, unknown, unknown>;

export interface ToolResult {
  content: { type: 'text'; text: string }[];
  /** The body that the endpoint answers. */
  structuredContent?: Record<string, unknown>;
  isError?: true;
}

/** Longest name of an argument that an error repeats. */
const NAME_CHARS_MAX = 100;

/**
 * Answers a call by the tool's endpoint, by its access rules and limits. A refusal is a result with `isError`, whose
 * text names the argument and the remedy, so that a model can correct its call.
 */
export async function callTool(
  tool: Tool,
  given: Readonly<Record<string, unknown>>,
  request: CarryingRequest,
  deps: ApiDeps,
): Promise<ToolResult> {
  try {
    const body = await readBody(tool, given, request, deps);
    return { content: [{ type: 'text', text: JSON.stringify(body) }], structuredContent: body };
  } catch (error) {
    const problem = presentProblem(error, request.requestId);
    if (problem.status === 500)
      deps.logger.error({ err: error, tool: tool.name }, 'a tool failed: this is a bug');
    return { content: [{ type: 'text', text: refusalOf(tool, problem) }], isError: true };
  }
}

async function readBody(
  tool: Tool,
  given: Readonly<Record<string, unknown>>,
  request: CarryingRequest,
  deps: ApiDeps,
): Promise<Record<string, unknown>> {
  const { endpoint } = tool;
  // Endpoints of tools are never public: `tool` refuses those that a key's limits do not count.
  if (!('public' in endpoint.access)) assertAllowed(request.caller, endpoint.access);
  const schemas = argumentsOf(tool);
  const texts = textsOf(tool, given, [
    ...Object.keys(schemas.params.shape),
    ...Object.keys(schemas.query.shape),
  ]);
  // A spread leaves out the getters of a request.
  const { caller, orgDb, signal } = request;
  const { body } = await endpoint.handle(
    {
      ...request,
      caller,
      orgDb,
      signal,
      params: validate(schemas.params, texts, 'path'),
      query: queryOf(schemas.query, texts),
      body: {},
    },
    deps,
  );
  const answered = body as Record<string, unknown>;
  if (deps.settings.checkResponses) endpoint.responses[200]?.schema?.parse(answered);
  // As a client of the API reads it: without fields that JSON leaves out.
  return JSON.parse(JSON.stringify(answered)) as Record<string, unknown>;
}

function queryOf(schema: z.ZodObject, texts: Readonly<Record<string, string>>): object {
  return { ...validate(schema, texts, 'query'), format: 'json' };
}

/**
 * The arguments as the texts of a query string, which is how the API receives them; null means absent. Errors:
 * invalid_parameter for an unknown name or a list, missing_parameter.
 */
function textsOf(
  tool: Tool,
  given: Readonly<Record<string, unknown>>,
  known: readonly string[],
): Record<string, string> {
  const texts: Record<string, string> = {};
  for (const [name, value] of Object.entries(given)) {
    if (value === null || value === undefined) continue;
    if (!known.includes(name))
      throw argumentError('invalid_parameter', name, `is not known here; give some of ${known.join(', ')}`);
    if (typeof value !== 'string' && typeof value !== 'number' && typeof value !== 'boolean')
      throw argumentError('invalid_parameter', name, 'must be a text, a number, true or false');
    texts[name] = String(value);
  }
  for (const name of tool.required)
    if (texts[name] === undefined) throw argumentError('missing_parameter', name, 'is required: give it');
  return texts;
}

function argumentError(
  code: 'invalid_parameter' | 'missing_parameter',
  name: string,
  message: string,
): DomainError {
  const field = name.slice(0, NAME_CHARS_MAX);
  return new DomainError(code, `${field}: ${message}`, { issues: [{ in: 'query', field, message }] });
}

/** The text of a refusal: code, reason, and the remedy where the reason has none. */
function refusalOf({ name }: Tool, { code, detail, status, request_id: requestId }: Problem): string {
  if (code === 'forbidden')
    return `forbidden: ${detail}. ${name} reads with the rights of the key: use a key that has them (./trueup keys create), or ask an administrator for one.`;
  if (status === 500)
    return `internal_error: the service failed. Its log has the reason under the request ${requestId}.`;
  return `${code}: ${detail}`;
}
