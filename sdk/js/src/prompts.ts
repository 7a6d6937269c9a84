/**
 * The prompts of a request as the service reads them from a captured payload, so that a verdict of this package is the
 * service's own. sdk/promptCases.json has the cases of both.
 */

/** Characters of a prompt that are searched, once foreign ones are stripped. */
export const SCANNED_CHARS = 512;
/** Fields of a request with prompts. */
const PROMPT_FIELDS = new Set([
  'prompt',
  'input',
  'messages',
  'contents',
  'texts',
  'inputs',
  'message',
  'inputText',
]);
/** Fields of messages and parts with more of them, or with text. */
const CONTAINERS = [
  'messages',
  'input',
  'prompt',
  'contents',
  'parts',
  'content',
  'text',
  'message',
] as const;
/** Types of parts with a tool's result: of Anthropic, of Responses, of OpenTelemetry and of the AI SDK. */
const RESULT_TYPES = new Set([
  'tool_result',
  'function_call_output',
  'custom_tool_call_output',
  'tool_call_response',
  'tool-result',
]);
/** Their fields with the result. */
const RESULT_FIELDS = ['content', 'output', 'result', 'response'];
/** Parts without a type that hold a tool's result, of Bedrock and of Google, and the field with the result. */
const RESULT_HOLDERS = [
  ['toolResult', 'content'],
  ['functionResponse', 'response'],
  ['function_response', 'response'],
] as const;
const SYSTEM_ROLES = new Set(['system', 'developer']);
const DEPTH_MAX = 8;
const FOREIGN = /[^\t\n\r\x20-\x7e]/;
const FOREIGN_ALL = /[^\t\n\r\x20-\x7e]/g;

type Loose = Record<string, unknown>;

/** The searched part of each text, without the application's instructions, stripped, each once. */
export function promptsOf(body: unknown): string[] {
  const found = new Set<string>();
  if (isMap(body)) {
    for (const name of Object.keys(body)) if (PROMPT_FIELDS.has(name)) collectContent(body[name], found, 0);
  }
  return [...found];
}

function isMap(value: unknown): value is Loose {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !ArrayBuffer.isView(value);
}

/** Whether anything is left of a text without foreign characters and white space. */
const VISIBLE = /[\x21-\x7e]/;
/** A text whose first visible character begins an object or a list of JSON. */
const LIKE_JSON = /^[^\x21-\x7e]*[{[]/;

function add(text: string, found: Set<string>): void {
  if (!VISIBLE.test(text)) return;
  const head = text.slice(0, SCANNED_CHARS);
  // Without foreign characters the head is the searched part, and a long prompt is not read to its end.
  found.add(FOREIGN.test(head) ? text.replace(FOREIGN_ALL, '').slice(0, SCANNED_CHARS) : head);
}

/** Text, the JSON text of a value, a message, or a list of them. */
function collectContent(value: unknown, found: Set<string>, depth: number): void {
  if (depth > DEPTH_MAX) return;
  if (typeof value === 'string') {
    const parsed = LIKE_JSON.test(value) ? parseJson(value.replace(FOREIGN_ALL, '')) : undefined;
    if (parsed === undefined || !collectKnown(parsed, found, depth + 1)) add(value, found);
  } else if (typeof value === 'object' && value !== null) collectKnown(value, found, depth + 1);
}

/** Whether the form is known. JSON of another form is one prompt as it is. */
function collectKnown(value: object, found: Set<string>, depth: number): boolean {
  if (depth > DEPTH_MAX) return false;
  if (Array.isArray(value)) return collectItems(value, found, depth);
  if (!isMap(value)) return false;
  const role = typeof value.role === 'string' ? value.role.toLowerCase() : '';
  if (SYSTEM_ROLES.has(role)) return true;
  if (typeof value.type === 'string' && value.type !== 'message') {
    collectPart(value, value.type, found);
    return true;
  }
  let isKnown = false;
  for (const name of CONTAINERS) {
    const inner = Object.hasOwn(value, name) ? value[name] : undefined;
    if (inner === undefined || inner === null) continue;
    if (typeof inner === 'string' && name !== 'messages') add(inner, found);
    else collectContent(inner, found, depth + 1);
    isKnown = true;
  }
  for (const [name, field] of RESULT_HOLDERS) {
    const holder = Object.hasOwn(value, name) ? value[name] : undefined;
    if (!isMap(holder)) continue;
    collectResult(holder[field], found, 0);
    isKnown = true;
  }
  return isKnown;
}

function collectPart(part: Loose, type: string, found: Set<string>): void {
  if (RESULT_TYPES.has(type)) {
    for (const name of RESULT_FIELDS) collectResult(part[name], found, 0);
    return;
  }
  const text = part.text ?? part.content;
  if (type.endsWith('text') && typeof text === 'string') add(text, found);
}

/** A tool's result: a text, parts with texts, or JSON, whose texts are one prompt. */
function collectResult(value: unknown, found: Set<string>, depth: number): void {
  if (depth > DEPTH_MAX) return;
  if (typeof value === 'string') add(value, found);
  else if (Array.isArray(value)) for (const item of value) collectResult(item, found, depth + 1);
  else if (isMap(value)) collectResultPart(value, found, depth);
}

function collectResultPart(part: Loose, found: Set<string>, depth: number): void {
  if (typeof part.type !== 'string') {
    if (!isMedia(part)) add(textsOf(part, 0).join('\n'), found);
    return;
  }
  const text = part.text ?? part.content ?? part.value;
  if (part.type.endsWith('json')) add(textsOf(part.value, 0).join('\n'), found);
  else if (Array.isArray(text)) collectResult(text, found, depth + 1);
  else if (part.type.endsWith('text') && typeof text === 'string') add(text, found);
}

/** Bedrock's images, videos and documents in results. */
const isMedia = (part: Loose): boolean =>
  ['image', 'video', 'document'].some((name) => {
    const media = part[name];
    return isMap(media) && media.source !== undefined;
  });

/** All texts of a JSON value, without the names of its fields. */
function textsOf(value: unknown, depth: number): string[] {
  if (typeof value === 'string') return [value];
  if (depth > DEPTH_MAX || !(Array.isArray(value) || isMap(value))) return [];
  return Object.values(value).flatMap((inner) => textsOf(inner, depth + 1));
}

function collectItems(items: readonly unknown[], found: Set<string>, depth: number): boolean {
  let isKnown = items.length === 0;
  for (const item of items) {
    if (typeof item === 'string') {
      add(item, found);
      isKnown = true;
    } else if (typeof item === 'object' && item !== null && collectKnown(item, found, depth + 1))
      isKnown = true;
  }
  return isKnown;
}

/** Undefined: it is no JSON after all. */
function parseJson(text: string): object | undefined {
  try {
    return JSON.parse(text) as object;
  } catch {
    return undefined;
  }
}
