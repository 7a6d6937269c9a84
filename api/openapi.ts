import { z } from 'zod';
import {
  createDocument,
  type ZodOpenApiObject,
  type ZodOpenApiOperationObject,
  type ZodOpenApiPathsObject,
} from 'zod-openapi';
import { ERROR_CODES, type ErrorCode } from '../domain/errors.js';
import type { ApiSettings } from './deps.js';
import {
  acceptsSessions,
  type Endpoint,
  idempotencyOf,
  limitClassOf,
  problemsOf,
  type ResponseDoc,
} from './endpoint.js';
import { addExamples } from './examples/addExamples.js';
import { RATE_LIMIT_HEADER_DOCS, RETRY_AFTER_DOC } from './limits/rateLimitFields.js';
import { DEPRECATION_HEADER_DOCS } from './pipeline/deprecation.js';
import { statusOf, titleOf } from './problem.js';

const problemSchema = z
  .strictObject({
    type: z.string(),
    title: z.string(),
    status: z.int(),
    detail: z.string(),
    instance: z.string(),
    code: z.enum(ERROR_CODES),
    message: z.string(),
    request_id: z.string(),
    errors: z
      .array(
        z.strictObject({
          in: z.enum(['query', 'path', 'body', 'header']),
          field: z.string(),
          message: z.string(),
        }),
      )
      .optional(),
    'violated-policies': z.array(z.string()).optional(),
  })
  .meta({ id: 'Problem', description: 'RFC 9457 problem details; `code` is stable.' });

function problemResponses(endpoint: Endpoint): Record<string, object> {
  const byStatus = new Map<number, ErrorCode[]>();
  for (const code of problemsOf(endpoint)) {
    const status = statusOf(code);
    byStatus.set(status, [...(byStatus.get(status) ?? []), code]);
  }
  return Object.fromEntries(
    [...byStatus].map(([status, codes]) => [
      String(status),
      {
        description: codes.map((code) => `${titleOf(code)} (\`${code}\`)`).join('; '),
        headers: documentHeaders({
          ...('public' in endpoint.access && status !== 429 ? {} : RATE_LIMIT_HEADER_DOCS),
          ...(status === 429 || status === 503 ? RETRY_AFTER_DOC : {}),
        }),
        content: { 'application/problem+json': { schema: problemSchema } },
      },
    ]),
  );
}

/**
 * The header Idempotency-Key (docs/decisions/0032). It has no example, because the page at /docs would fill it in and
 * send every request under the same key.
 */
const idempotencyKeyHeader = z.object({
  'Idempotency-Key': z.string().optional().meta({
    pattern: '^(?:"[A-Za-z0-9._:-]{1,128}"|[A-Za-z0-9._:-]{1,128})$',
    description:
      'A new one for each request, such as a UUID: 1 to 128 of A-Z, a-z, 0-9, ".", "_", ":" and "-", quoted or bare. The same request sent again within 24 hours is answered as the first one and done once.',
  }),
});

/** The documented headers of an endpoint's answers. */
function headersOf(endpoint: Endpoint, doc: ResponseDoc): Record<string, object> {
  const told = {
    ...doc.headers,
    ...(idempotencyOf(endpoint)
      ? { 'Idempotency-Replayed': '`true` on the answer to a request that was sent again' }
      : {}),
    ...(endpoint.deprecated ? DEPRECATION_HEADER_DOCS : {}),
    ...('public' in endpoint.access ? {} : RATE_LIMIT_HEADER_DOCS),
  };
  return documentHeaders(told);
}

function documentHeaders(told: Record<string, string>): Record<string, object> {
  return Object.fromEntries(
    Object.entries(told).map(([name, description]) => [name, { description, schema: { type: 'string' } }]),
  );
}

function successResponses(endpoint: Endpoint): Record<string, object> {
  return Object.fromEntries(
    Object.entries(endpoint.responses).map(([status, doc]) => {
      const contentType = doc.contentType ?? 'application/json';
      const schema = doc.schema ?? (doc.contentType ? { type: 'string' as const } : undefined);
      const headers = headersOf(endpoint, doc);
      return [
        status,
        {
          description: doc.description,
          ...(Object.keys(headers).length > 0 ? { headers } : {}),
          ...(schema ? { content: { [contentType]: { schema }, ...otherContentOf(doc) } } : {}),
        },
      ];
    }),
  );
}

function otherContentOf({ otherTypes = {} }: ResponseDoc): Record<string, object> {
  return Object.fromEntries(
    Object.entries(otherTypes).map(([type, schema]) => [
      type,
      { schema: schema === 'text' ? { type: 'string' as const } : schema },
    ]),
  );
}

function operationOf(endpoint: Endpoint): ZodOpenApiOperationObject {
  const schemes = [
    ...(endpoint.authSchemes ?? ['bearer']),
    ...(acceptsSessions(endpoint) ? ['session'] : []),
  ];
  const takesKey = idempotencyOf(endpoint) !== undefined || endpoint.idempotency === 'own';
  const content = endpoint.streams
    ? Object.fromEntries(
        Object.entries(endpoint.streams).map(([type, schema]) => [
          type,
          { schema: schema === 'binary' ? { type: 'string' as const, format: 'binary' } : schema },
        ]),
      )
    : endpoint.body
      ? { 'application/json': { schema: endpoint.body } }
      : undefined;
  return {
    operationId: endpoint.operationId,
    summary: endpoint.summary,
    ...(endpoint.description ? { description: endpoint.description } : {}),
    tags: [endpoint.tag],
    security: 'public' in endpoint.access ? [] : schemes.map((scheme) => ({ [scheme]: [] })),
    'x-limit': limitClassOf(endpoint),
    ...('public' in endpoint.access
      ? {}
      : {
          ...(endpoint.access.scope === 'any' ? {} : { 'x-scope': endpoint.access.scope }),
          ...(endpoint.access.role ? { 'x-role': endpoint.access.role } : {}),
          'x-workspace-keys': endpoint.access.workspace,
        }),
    ...(endpoint.deprecated ? { deprecated: true } : {}),
    ...(endpoint.query || endpoint.params || takesKey
      ? {
          requestParams: {
            ...(takesKey ? { header: idempotencyKeyHeader } : {}),
            ...(endpoint.query ? { query: endpoint.query as z.ZodObject } : {}),
            ...(endpoint.params ? { path: endpoint.params as z.ZodObject } : {}),
          },
        }
      : {}),
    ...(content ? { requestBody: { required: !endpoint.isBodyOptional, content } } : {}),
    responses: { ...successResponses(endpoint), ...problemResponses(endpoint) },
  } as ZodOpenApiOperationObject;
}

/** Builds the OpenAPI 3.1 document of the endpoints from the schemas that validate requests and answers. */
export function buildOpenApi(endpoints: readonly Endpoint[], settings: ApiSettings): object {
  const paths: ZodOpenApiPathsObject = {};
  for (const endpoint of endpoints) {
    const path = { ...paths[endpoint.path], [endpoint.method]: operationOf(endpoint) };
    paths[endpoint.path] = path;
  }
  const document: ZodOpenApiObject = {
    openapi: '3.1.0',
    info: {
      title: 'Trueup',
      version: settings.version,
      description: 'What LLM calls really cost: calls in, bills in, the gap out.',
    },
    servers: [{ url: '/' }],
    paths,
    components: {
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer', description: 'An API key: `tu_live_…`.' },
        basic: {
          type: 'http',
          scheme: 'basic',
          description: 'For clients that know only Basic: the key is the password.',
        },
        session: {
          type: 'apiKey',
          in: 'cookie',
          name: 'session',
          description:
            'The session of a browser; over TLS the cookie is `__Host-session`. Changes also need `X-Requested-With: dashboard` from a page of this service.',
        },
      },
    },
  };
  const built = createDocument(document);
  addExamples(built.paths ?? {});
  return built;
}
