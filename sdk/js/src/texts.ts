/** The texts of a request, for the estimate of its tokens and for recognising equal calls. Nothing is kept of them. */

/** Fields that count as input, of every provider's request. */
const INPUT_FIELDS = [
  'messages',
  'input',
  'prompt',
  'contents',
  'content',
  'system',
  'instructions',
  'tools',
  'functions',
  'texts',
  'inputs',
  'message',
  'chatHistory',
  'preamble',
  'documents',
  'query',
  'config',
  'toolConfig',
  'inputText',
] as const;
/** Of these, the ones with prompts. */
const PROMPT_FIELDS = [
  'messages',
  'input',
  'prompt',
  'contents',
  'content',
  'texts',
  'inputs',
  'message',
  'inputText',
] as const;
/** No text of the request: names, and images, audio and files, which are not counted. */
const NO_TEXT = new Set([
  'role',
  'type',
  'data',
  'image_url',
  'file_data',
  'bytes',
  'inlineData',
  'url',
  'imageUrl',
  'audio',
  'image',
]);
const SYSTEM_ROLES = new Set(['system', 'developer', 'SYSTEM']);
const CHARS_OF_A_TOKEN = 4;
const DEPTH_MAX = 12;
/** Between prompts; no keyboard types it. */
const SEPARATOR = '\u001f';

/** About a quarter of the characters; null: the request has no text. */
export function estimateTokens(body: unknown): number | null {
  if (typeof body !== 'object' || body === null) return null;
  let chars = 0;
  for (const field of INPUT_FIELDS) chars += charsOf((body as Record<string, unknown>)[field], 0);
  return chars === 0 ? null : Math.ceil(chars / CHARS_OF_A_TOKEN);
}

function charsOf(value: unknown, depth: number): number {
  if (typeof value === 'string') return value.length;
  // Embeddings take tokens instead of texts.
  if (typeof value === 'number') return CHARS_OF_A_TOKEN;
  if (typeof value !== 'object' || value === null || depth > DEPTH_MAX || ArrayBuffer.isView(value)) return 0;
  let chars = 0;
  if (Array.isArray(value)) {
    for (const item of value) chars += charsOf(item, depth + 1);
    return chars;
  }
  for (const name in value) {
    if (NO_TEXT.has(name)) continue;
    const inner = (value as Record<string, unknown>)[name];
    if (typeof inner !== 'number') chars += charsOf(inner, depth + 1);
  }
  return chars;
}

/** The prompts in order, without the instructions of the application; null: there is none. */
export function promptText(body: unknown): string | null {
  if (typeof body !== 'object' || body === null) return null;
  const found: string[] = [];
  for (const field of PROMPT_FIELDS) collect((body as Record<string, unknown>)[field], found, 0);
  return found.length === 0 ? null : found.join(SEPARATOR);
}

function collect(value: unknown, found: string[], depth: number): void {
  if (typeof value === 'string') {
    if (value.trim() !== '') found.push(value);
    return;
  }
  if (typeof value === 'number') {
    found.push(String(value));
    return;
  }
  if (typeof value !== 'object' || value === null || depth > DEPTH_MAX || ArrayBuffer.isView(value)) return;
  if (Array.isArray(value)) {
    for (const item of value) collect(item, found, depth + 1);
    return;
  }
  const part = value as Record<string, unknown>;
  if (typeof part.role === 'string' && SYSTEM_ROLES.has(part.role)) return;
  for (const name of [
    'content',
    'parts',
    'text',
    'message',
    'output',
    'functionResponse',
    'toolResult',
    'json',
  ])
    collect(part[name], found, depth + 1);
}
