import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PROJECT_ROOT } from '../../platform/projectRoot.js';
import { EXAMPLES, type RenderedExample, renderExample } from './examples.js';

/** The extension that names the operations whose answers hold the values of an example (docs/api.md). */
export const EXAMPLE_FROM = 'x-trueup-example-from';

interface Content {
  [mediaType: string]: { schema?: object; example?: unknown };
}
interface Operation {
  operationId?: string;
  parameters?: { name: string; in: string; schema: object; example?: unknown }[];
  requestBody?: { content: Content };
  responses: Record<string, { content?: Content }>;
  [EXAMPLE_FROM]?: RenderedExample['sources'];
}

/** Answers of the demo, by operationId; `RECORD_EXAMPLES=1` of test/e2e/openapiExamples.slow.test.ts records them. */
type RecordedAnswers = Readonly<Record<string, { status: number; body: unknown } | undefined>>;

/** A stream of protobuf or of lines has no example: the same operation takes JSON. */
const EXAMPLE_TYPES = ['application/json', 'multipart/form-data'];

/** Adds the examples of requests and responses to the operations of a built document. */
export function addExamples(paths: object): void {
  const answers: RecordedAnswers = JSON.parse(
    readFileSync(join(PROJECT_ROOT, 'data', 'example-answers.json'), 'utf8'),
  );
  for (const methods of Object.values(paths) as Record<string, Operation>[])
    for (const operation of Object.values(methods)) addToOperation(operation, answers);
}

function addToOperation(operation: Operation, answers: RecordedAnswers): void {
  const example = EXAMPLES[operation.operationId ?? ''];
  if (!example) return;
  const { params, query, body, sources } = renderExample(example);
  for (const parameter of operation.parameters ?? []) {
    const text =
      parameter.in === 'path'
        ? params[parameter.name]
        : parameter.in === 'query'
          ? query[parameter.name]
          : undefined;
    if (text !== undefined) parameter.example = typedParameter(text, parameter.schema);
  }
  for (const [type, content] of Object.entries(operation.requestBody?.content ?? {}))
    if (body !== undefined && EXAMPLE_TYPES.includes(type)) content.example = body;
  if (Object.keys(sources).length > 0) operation[EXAMPLE_FROM] = sources;
  const answer = answers[operation.operationId ?? ''];
  const content = answer && operation.responses[answer.status]?.content?.['application/json'];
  if (content) content.example = answer.body;
}

/** The parameter's text as its schema types it: `1` of an integer is a number in the document. */
function typedParameter(text: string, schema: object): unknown {
  const isNumber = 'type' in schema && (schema.type === 'integer' || schema.type === 'number');
  return isNumber ? Number(text) : text;
}
