import type { JsonSchema } from '../api/support/jsonSchema.js';
import type { RawRequest } from '../api/support/requests.js';

/** An operation of the OpenAPI document, as far as its examples need it. */
export interface ListedOperation {
  operationId: string;
  method: string;
  path: string;
  parameters?: { name: string; in: string; required?: boolean; schema: JsonSchema; example?: unknown }[];
  requestBody?: { required?: boolean; content: Record<string, { schema: JsonSchema; example?: unknown }> };
  responses: Record<string, { content?: Record<string, { schema: JsonSchema; example?: unknown }> }>;
  'x-trueup-example-from'?: Record<string, ExampleSource>;
}

export interface ExampleSource {
  operationId: string;
  pointer: string;
  query?: Record<string, string>;
}

export type ExampleRequest = RawRequest;

export function operationsOf(document: object): Map<string, ListedOperation> {
  const { paths } = document as { paths: Record<string, Record<string, ListedOperation>> };
  return new Map(
    Object.entries(paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]): [string, ListedOperation] => [
        operation.operationId,
        { ...operation, method, path },
      ]),
    ),
  );
}

/** The value at a JSON Pointer, or undefined. */
export function valueAt(value: unknown, pointer: string): unknown {
  let found = value;
  for (const step of pointer.split('/').slice(1))
    found = (found as Record<string, unknown> | undefined)?.[step];
  return found;
}

/** The documented example of an operation as a request, with real values from the operations that it names. */
export async function requestOf(
  operation: ListedOperation,
  moreQuery: Record<string, string>,
  readSource: (source: ExampleSource) => Promise<unknown>,
): Promise<ExampleRequest> {
  const { parameters = [], requestBody, method } = operation;
  let { path } = operation;
  const query = new URLSearchParams();
  const sources = new Map(Object.entries(operation['x-trueup-example-from'] ?? {}));
  const realValue = async (expression: string, illustration: unknown) => {
    const source = sources.get(expression);
    sources.delete(expression);
    return source ? await readSource(source) : illustration;
  };
  for (const { name, in: place, example } of parameters) {
    if (example === undefined) continue;
    const text = String(await realValue(`$request.${place}.${name}`, example));
    if (place === 'path') path = path.replace(`{${name}}`, encodeURIComponent(text));
    if (place === 'query') query.set(name, text);
  }
  for (const [name, text] of Object.entries(moreQuery)) query.set(name, text);
  const [type, content] =
    Object.entries(requestBody?.content ?? {}).find(([, { example }]) => example !== undefined) ?? [];
  const fill = async (value: unknown, expression: string): Promise<unknown> => {
    if (Array.isArray(value))
      return Promise.all(value.map((item, index) => fill(item, `${expression}/${index}`)));
    if (typeof value !== 'object' || value === null) return realValue(expression, value);
    const entries = Object.entries(value).map(async ([name, item]) => [
      name,
      await fill(item, `${expression}/${name}`),
    ]);
    return Object.fromEntries(await Promise.all(entries));
  };
  const body = content ? await fill(content.example, '$request.body#') : undefined;
  if (sources.size > 0) throw new Error(`no part of the request is ${[...sources.keys()].join(', ')}`);
  return {
    method: method.toUpperCase(),
    path: query.size > 0 ? `${path}?${query}` : path,
    ...(type && body !== undefined ? encodedBody(type, body as Record<string, string>) : {}),
  };
}

const BOUNDARY = 'example-boundary';

function encodedBody(type: string, body: Record<string, string>): Pick<RawRequest, 'headers' | 'body'> {
  if (type !== 'multipart/form-data')
    return { headers: { 'content-type': type }, body: JSON.stringify(body) };
  const parts = Object.entries(body).map(([name, value]) => {
    const file = name === 'file' || name === 'logo' ? '; filename="bill.csv"' : '';
    return `--${BOUNDARY}\r\ncontent-disposition: form-data; name="${name}"${file}\r\n\r\n${value}\r\n`;
  });
  return {
    headers: { 'content-type': `${type}; boundary=${BOUNDARY}` },
    body: `${parts.join('')}--${BOUNDARY}--\r\n`,
  };
}
