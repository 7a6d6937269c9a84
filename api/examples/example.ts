/** A value that differs between installations: a literal to show, and the operation whose answer holds a real one. */
export class ValueFrom {
  constructor(
    readonly illustration: string,
    readonly source: ExampleSource,
  ) {}
}

/** The place of a value in the answer to another operation's example. */
export interface ExampleSource {
  operationId: string;
  /** JSON Pointer into the response body. */
  pointer: string;
  /** Query parameters to use in addition to those of the other operation's example. */
  query?: Readonly<Record<string, string>>;
}

type ParameterExample = string | ValueFrom;

/** An example request of one operation. It succeeds on an installation with the demo loaded. */
export interface OperationExample {
  params?: Readonly<Record<string, ParameterExample>>;
  query?: Readonly<Record<string, ParameterExample>>;
  /** A JSON body, or the fields of a form. May contain ValueFrom at any depth. */
  body?: unknown;
}

/** An example with its literals alone, and the sources of those that differ between installations. */
export interface RenderedExample {
  params: Readonly<Record<string, string>>;
  query: Readonly<Record<string, string>>;
  body: unknown;
  /** By the runtime expression of OpenAPI that names the part of the request. */
  sources: Readonly<Record<string, ExampleSource>>;
}

export function renderExample(example: OperationExample): RenderedExample {
  const sources: Record<string, ExampleSource> = {};
  const render = (value: unknown, expression: string): unknown => {
    if (value instanceof ValueFrom) {
      sources[expression] = value.source;
      return value.illustration;
    }
    if (Array.isArray(value)) return value.map((item, index) => render(item, `${expression}/${index}`));
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(
      Object.entries(value).map(([name, item]) => [name, render(item, `${expression}/${name}`)]),
    );
  };
  const parameters = (given: OperationExample['query'], place: string) =>
    Object.fromEntries(
      Object.entries(given ?? {}).map(([name, value]) => [
        name,
        render(value, `$request.${place}.${name}`) as string,
      ]),
    );
  const params = parameters(example.params, 'path');
  const query = parameters(example.query, 'query');
  const body = render(example.body, '$request.body#');
  return { params, query, body, sources };
}

const HEX = '0199f3a2c4d57e3a8f00112233445566';

/** An id of a kind, from the answer to another operation. */
export function idFrom(
  kind: string,
  operationId: string,
  pointer: string,
  query?: Readonly<Record<string, string>>,
): ValueFrom {
  const illustration = kind === 'key' ? 'key_0123456789' : `${kind}_${HEX}`;
  return new ValueFrom(illustration, { operationId, pointer, ...(query ? { query } : {}) });
}
