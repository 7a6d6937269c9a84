/**
 * The prompts that policies search: each text part by itself, without system instructions (docs/ingest.md); read
 * lazily.
 */

import { hash } from 'node:crypto';
import type { EventKind, Json } from './event.js';
import {
  type AttributeValue,
  jsonOf,
  labelOf,
  parseJsonText,
  readAnyValue,
  stripText,
} from './jsonValues.js';

/** Roles whose text is an instruction by the application's author, not a prompt. */
const SYSTEM_ROLES = new Set(['system', 'developer']);

/** Attributes that contain a prompt, a list of messages, or the JSON text of a request. */
const CONTENT_ATTRIBUTES = new Set([
  'gen_ai.input.messages',
  'gen_ai.prompt',
  'input.value',
  'langfuse.observation.input',
  'ai.prompt',
  'ai.prompt.messages',
  'prompt',
  'input',
  'messages',
]);
const NUMBERED_PROMPT = /^gen_ai\.prompt\.(\d+)\.(role|content)$/;
const NUMBERED_MESSAGE =
  /^llm\.input_messages\.(\d+)\.message\.(?:(role|content)|contents\.\d+\.message_content\.text)$/;
/** Event names of messages contain the role, in conventions before 1.37. */
const MESSAGE_EVENT = /^gen_ai\.(user|assistant|tool)\.message$/;
const CONTENT_EVENTS = new Set(['gen_ai.content.prompt', 'gen_ai.client.inference.operation.details']);
const DEPTH_MAX = 8;

class Collected {
  readonly texts = new Set<string>();

  add(text: string): void {
    const clean = stripText(text);
    if (clean.trim() !== '') this.texts.add(clean);
  }
}

/** Characters of a call's prompts that stay in memory until it is stored, since many calls wait at once. */
const KEPT_CHARS_MAX = 2_048;

/**
 * Keeps short prompts in memory, since ingest reads them twice, to hash and to judge, and reading costs more than
 * searching. The result refers either to the prompts or to their source.
 */
export function keepingShort(read: () => readonly string[]): () => readonly string[] {
  const texts = read();
  if (texts.length === 0) return NO_PROMPTS;
  return texts.reduce((sum, text) => sum + text.length, 0) > KEPT_CHARS_MAX ? read : keep(texts);
}

const NO_PROMPTS = () => [];

/** A function of its own, so that the kept one does not refer to `read`. */
function keep(texts: readonly string[]): () => readonly string[] {
  return () => texts;
}

/** Prompts of a span, from its unread attributes (names and values alternating) and its events. */
export function promptsOfSpan(unread: readonly AttributeValue[], events: unknown): string[] {
  const found = new Collected();
  collectAttributes(unread, found);
  if (Array.isArray(events)) for (const event of events) collectEvent(event, found);
  return [...found.texts];
}

function collectAttributes(unread: readonly AttributeValue[], found: Collected): void {
  const numbered = new Map<string, { role: string; texts: string[] }>();
  for (let index = 0; index < unread.length; index += 2) {
    const name = unread[index] as string;
    const value = unread[index + 1];
    if (CONTENT_ATTRIBUTES.has(name)) collectContent(jsonOf(value), found, 0);
    else if (name.startsWith('gen_ai.prompt.'))
      collectNumbered(NUMBERED_PROMPT.exec(name), 'p', value, numbered);
    else if (name.startsWith('llm.input_messages.'))
      collectNumbered(NUMBERED_MESSAGE.exec(name), 'm', value, numbered);
  }
  for (const { role, texts } of numbered.values()) {
    if (!SYSTEM_ROLES.has(role)) for (const text of texts) collectContent(text, found, 1);
  }
}

/** Prompts in a stored payload; undefined: only its size or nothing is stored. Some prompts may be missing. */
export function promptsOfStored(kind: EventKind, payload: Json): string[] | undefined {
  if (payload === null || (isMap(payload) && payload._truncated === true)) return undefined;
  if (kind !== 'otel_span' || !isMap(payload)) return promptsOfPayload(payload);
  const { _events: events, ...attributes } = payload;
  const found = new Collected();
  collectAttributes(
    Object.entries(attributes).flatMap(([name, value]) => [name, value ?? undefined]),
    found,
  );
  if (Array.isArray(events)) {
    for (const event of events)
      if (isMap(event) && isMap(event.attributes ?? null))
        collectMessage(event.name, Object.entries(event.attributes as JsonMap), found);
  }
  return [...found.texts];
}

type JsonMap = { [key: string]: Json };

function isMap(value: Json): value is JsonMap {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Further fields of requests with prompts: of Google, of Cohere, and of models of Bedrock. */
const CONTENT_FIELDS = new Set(['contents', 'texts', 'inputs', 'message', 'inputText']);

/**
 * Prompts of a payload in the form of wrappers and webhooks: `prompt`, `input`, `messages[].content` and the like. The
 * wrappers read a request in the same way for their verdicts (sdk/README.md).
 */
export function promptsOfPayload(payload: Json): string[] {
  const found = new Collected();
  if (typeof payload === 'object' && payload !== null && !Array.isArray(payload)) {
    for (const name of Object.keys(payload)) {
      if (CONTENT_ATTRIBUTES.has(name) || CONTENT_FIELDS.has(name))
        collectContent(payload[name] as Json, found, 0);
    }
  }
  return [...found.texts];
}

function collectNumbered(
  match: RegExpExecArray | null,
  family: string,
  value: AttributeValue,
  numbered: Map<string, { role: string; texts: string[] }>,
): void {
  const text = labelOf(value);
  if (match === null || text === undefined) return;
  const key = family + match[1];
  const message = numbered.get(key) ?? { role: 'user', texts: [] };
  numbered.set(key, message);
  if (match[2] === 'role') message.role = text.toLowerCase();
  else message.texts.push(text);
}

function collectEvent(event: unknown, found: Collected): void {
  const { name, attributes } = (event ?? {}) as { name?: unknown; attributes?: unknown };
  if (!isOfMessages(name) || !Array.isArray(attributes)) return;
  const pairs = (attributes as ({ key?: unknown; value?: unknown } | null)[]).flatMap(
    (pair): [string, Json][] =>
      typeof pair?.key === 'string' ? [[pair.key, jsonOf(readAnyValue(pair.value))]] : [],
  );
  collectMessage(name, pairs, found);
}

function isOfMessages(name: unknown): name is string {
  return typeof name === 'string' && (MESSAGE_EVENT.test(name) || CONTENT_EVENTS.has(name));
}

/** Collects the prompts in the attributes of a span's event. */
function collectMessage(name: unknown, attributes: readonly [string, Json][], found: Collected): void {
  if (!isOfMessages(name)) return;
  const isMessage = MESSAGE_EVENT.test(name);
  for (const [key, value] of attributes) {
    if (CONTENT_ATTRIBUTES.has(key)) collectContent(value, found, 0);
    else if (isMessage && (key === 'content' || key === 'gen_ai.event.content'))
      collectContent(value, found, 0);
  }
}

/** Accepts text, the JSON text of a value, a message, a list of either, or a request that contains messages. */
function collectContent(value: Json, found: Collected, depth: number): void {
  if (depth > DEPTH_MAX) return;
  if (typeof value === 'string') {
    const parsed = parseJsonText(value);
    if (parsed === undefined) found.add(value);
    else if (!collectKnown(parsed, found, depth + 1)) found.add(value);
    return;
  }
  if (typeof value === 'object' && value !== null) collectKnown(value, found, depth + 1);
}

/** Keys that contain messages, parts or the prompt itself; system instructions have other keys. */
const CONTAINERS = ['messages', 'input', 'prompt', 'contents', 'parts', 'content', 'text', 'message'];

/** Whether the shape is known; JSON of an unknown shape is one prompt as written. */
function collectKnown(value: Json[] | { [key: string]: Json }, found: Collected, depth: number): boolean {
  if (depth > DEPTH_MAX) return false;
  if (Array.isArray(value)) return collectItems(value, found, depth);
  const role = typeof value.role === 'string' ? value.role.toLowerCase() : '';
  if (SYSTEM_ROLES.has(role)) return true;
  if (typeof value.type === 'string' && value.type !== 'message') {
    collectPart(value, value.type, found);
    return true;
  }
  let isKnown = false;
  for (const key of CONTAINERS) {
    const inner = Object.hasOwn(value, key) ? value[key] : undefined;
    if (inner === undefined || inner === null) continue;
    if (typeof inner === 'string' && key !== 'messages') found.add(inner);
    else collectContent(inner, found, depth + 1);
    isKnown = true;
  }
  for (const [key, field] of RESULT_HOLDERS) {
    const holder = Object.hasOwn(value, key) ? value[key] : undefined;
    if (holder === undefined || !isMap(holder)) continue;
    collectResult(holder[field], found, 0);
    isKnown = true;
  }
  return isKnown;
}

function collectItems(items: readonly Json[], found: Collected, depth: number): boolean {
  let isKnown = items.length === 0;
  for (const item of items) {
    if (typeof item === 'string') {
      found.add(item);
      isKnown = true;
    } else if (typeof item === 'object' && item !== null && collectKnown(item, found, depth + 1))
      isKnown = true;
  }
  return isKnown;
}

/** Collects a typed part: texts and results of tools are prompts; images, calls of tools and reasoning are not. */
function collectPart(part: JsonMap, type: string, found: Collected): void {
  if (RESULT_TYPES.has(type)) {
    for (const name of RESULT_FIELDS) collectResult(part[name], found, 0);
    return;
  }
  const text = part.text ?? part.content;
  if (type.endsWith('text') && typeof text === 'string') found.add(text);
}

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

/** Collects a tool's result: a text, parts with texts, or JSON, whose texts are one prompt. */
function collectResult(value: Json | undefined, found: Collected, depth: number): void {
  if (depth > DEPTH_MAX || value === undefined || value === null) return;
  if (typeof value === 'string') found.add(value);
  else if (Array.isArray(value)) for (const item of value) collectResult(item, found, depth + 1);
  else if (isMap(value)) collectResultPart(value, found, depth);
}

function collectResultPart(part: JsonMap, found: Collected, depth: number): void {
  if (typeof part.type !== 'string') {
    if (!isMedia(part)) found.add(textsOf(part, 0).join('\n'));
    return;
  }
  const text = part.text ?? part.content ?? part.value;
  if (part.type.endsWith('json')) found.add(textsOf(part.value, 0).join('\n'));
  else if (Array.isArray(text)) collectResult(text, found, depth + 1);
  else if (part.type.endsWith('text') && typeof text === 'string') found.add(text);
}

/** Bedrock's images, videos and documents in results. */
const isMedia = (part: JsonMap): boolean =>
  ['image', 'video', 'document'].some((name) => {
    const media = part[name];
    return media !== undefined && isMap(media) && media.source !== undefined;
  });

/** All texts of a JSON value, without the names of its fields. */
function textsOf(value: Json | undefined, depth: number): string[] {
  if (typeof value === 'string') return [value];
  if (typeof value !== 'object' || value === null || depth > DEPTH_MAX) return [];
  return Object.values(value).flatMap((inner: Json) => textsOf(inner, depth + 1));
}

/** A hash that is equal for equal prompts and does not store their text (docs/decisions/0027). */

/** Stripped text never contains this character. */
const SEPARATOR = '\u001f';

/** The first 8 bytes of the prompts' sha256 as a signed Postgres integer; null: there is no prompt. */
export function promptHashOf(prompts: readonly string[]): bigint | null {
  if (prompts.length === 0) return null;
  return hash('sha256', prompts.join(SEPARATOR), 'buffer').readBigInt64BE();
}

/** The smaller hash of two reports of a call, or the only one; independent of their order. */
export function joinPromptHashes(one: bigint | null, other: bigint | null): bigint | null {
  if (one === null || other === null) return one ?? other;
  return one < other ? one : other;
}
