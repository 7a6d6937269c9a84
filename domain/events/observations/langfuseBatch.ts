/**
 * The batches of Langfuse's clients before their version 4 (`POST /api/public/ingestion`): items in envelopes of id,
 * type, timestamp and body. Generations and embeddings are calls, traces have labels of their calls, other items are
 * accepted and ignored. Pure.
 *
 * Source of the names: Langfuse's API reference, "ingestion".
 */
import { DomainError } from '../../errors.js';
import { ID_CHARS_MAX, type MappedBatch } from '../event.js';
import {
  checkLength,
  fieldOf,
  ItemFault,
  isJsonObject,
  type JsonObject,
  readCost,
  readInstant,
  shown,
  textOf,
} from '../itemFault.js';
import { stripJson } from '../jsonValues.js';
import { readUsageObject } from '../usageObjects.js';
import {
  fieldsOfBody,
  type ObservationPart,
  RECORD_CHARS_MAX,
  type RecordKind,
} from './observationRecord.js';

/** Senders of these items in ingest health. */
const SCOPE_NAME = 'langfuse';

/** Items that no call needs. */
const IGNORED = new Set([
  'event-create',
  'score-create',
  'sdk-log',
  'dataset-run-item-create',
  'agent-create',
  'tool-create',
  'chain-create',
  'retriever-create',
  'evaluator-create',
  'guardrail-create',
  'span-create',
  'span-update',
]);
/** Kinds of observations that are calls. */
const CALL_TYPES = new Set(['GENERATION', 'EMBEDDING']);

interface Meaning {
  kind: RecordKind;
  isCreate: boolean;
}

const MEANINGS: Readonly<Record<string, Meaning>> = {
  'trace-create': { kind: 'trace', isCreate: true },
  'generation-create': { kind: 'generation', isCreate: true },
  'generation-update': { kind: 'generation', isCreate: false },
  'embedding-create': { kind: 'generation', isCreate: true },
};

/** The items of a body. @throws DomainError invalid_body */
export function listLangfuseItems(body: unknown): readonly unknown[] {
  const batch = isJsonObject(body) ? body.batch : undefined;
  if (Array.isArray(batch)) return batch;
  throw new DomainError('invalid_body', 'batch: must be an array of items', {
    issues: [{ in: 'body', field: 'batch', message: 'must be an array of items' }],
  });
}

/** Reads items in order; a wrong one is rejected with its index and does not affect the others. */
export function readLangfuseItems(items: readonly unknown[]): MappedBatch {
  const batch: MappedBatch = { calls: [], rejections: [], ignored: 0, links: [] };
  const itemIds: string[] = [];
  const parts: ObservationPart[] = [];
  items.forEach((given, index) => {
    const envelope = stripJson(given);
    itemIds.push(idOfItem(envelope, index));
    try {
      const part = partOf(envelope, index);
      if (part === undefined) batch.ignored += 1;
      else parts.push(part);
    } catch (fault) {
      if (!(fault instanceof ItemFault)) throw fault;
      batch.rejections.push(rejectionOf(fault, index, itemIds[index] as string));
    }
  });
  batch.observations = { itemIds, parts };
  return batch;
}

/** The rejection of an item, for its sender and for ingest health. */
export function rejectionOf(
  { reason, message }: ItemFault,
  index: number,
  itemId: string,
): MappedBatch['rejections'][number] {
  const label = `item ${shown(itemId)}`;
  return { index, label, reason, message, serviceName: '', scopeName: SCOPE_NAME };
}

/** The id under which the answer names the item. */
function idOfItem(envelope: unknown, index: number): string {
  const id = isJsonObject(envelope) ? envelope.id : undefined;
  return typeof id === 'string' ? id : String(index);
}

/** The part that an item reports; undefined: it is ignored. @throws ItemFault */
function partOf(envelope: unknown, index: number): ObservationPart | undefined {
  if (!isJsonObject(envelope)) throw new ItemFault('invalid_field', 'the item is not an object');
  const type = textOf(envelope, 'type');
  if (type === undefined) throw new ItemFault('missing_field', 'type is missing');
  checkLength(textOf(envelope, 'id') ?? missing('id'), ID_CHARS_MAX, 'id');
  if (IGNORED.has(type)) return undefined;
  const body = fieldOf(envelope, 'body');
  if (!isJsonObject(body)) throw new ItemFault('invalid_field', 'body is not an object');
  const meaning = meaningOf(type, body);
  if (meaning === undefined) return undefined;
  const { kind, isCreate } = meaning;
  const id = checkLength(textOf(body, 'id') ?? missing('body.id'), ID_CHARS_MAX, 'body.id');
  const traceId = kind === 'trace' ? undefined : textOf(body, 'traceId');
  if (traceId !== undefined) checkLength(traceId, ID_CHARS_MAX, 'body.traceId');
  checkValues(kind, body);
  const atMicros = readInstant(fieldOf(envelope, 'timestamp'), 'timestamp');
  const { fields, content } = fieldsOfBody(kind, body, { atMicros, isCreate });
  if (JSON.stringify(fields).length > RECORD_CHARS_MAX)
    throw new ItemFault(
      'string_too_long',
      `usage, labels and tags have more than ${RECORD_CHARS_MAX} characters`,
    );
  return { index, kind, id, traceId: traceId ?? null, fields, content };
}

function meaningOf(type: string, body: JsonObject): Meaning | undefined {
  if (type === 'observation-create' || type === 'observation-update') {
    const isCall = CALL_TYPES.has((textOf(body, 'type') ?? '').toUpperCase());
    return isCall ? { kind: 'generation', isCreate: type === 'observation-create' } : undefined;
  }
  const meaning = Object.hasOwn(MEANINGS, type) ? MEANINGS[type] : undefined;
  if (meaning === undefined) throw new ItemFault('invalid_field', `type: ${shown(type)} is not known`);
  return meaning;
}

function missing(field: string): never {
  throw new ItemFault('missing_field', `${field} is missing`);
}

/** Refuses values that could never be read, so that one wrong part does not spoil a record. @throws ItemFault */
function checkValues(kind: RecordKind, body: JsonObject): void {
  if (kind === 'trace') {
    for (const name of ['sessionId', 'userId'] as const)
      checkLength(textOf(body, name) ?? '', ID_CHARS_MAX, `body.${name}`);
    textOf(body, 'environment');
    return;
  }
  textOf(body, 'model');
  textOf(body, 'level');
  textOf(body, 'parentObservationId');
  for (const name of ['startTime', 'endTime'] as const) {
    const time = fieldOf(body, name);
    if (time !== undefined) readInstant(time, `body.${name}`);
  }
  for (const name of ['usage', 'usageDetails', 'costDetails'] as const) {
    const counts = fieldOf(body, name);
    if (counts === undefined) continue;
    if (!isJsonObject(counts)) throw new ItemFault('invalid_field', `body.${name} is not an object`);
    if (name !== 'costDetails') readUsageObject(counts, `body.${name}`);
    else
      for (const [key, cost] of Object.entries(counts))
        if (cost !== null) readCost(cost, `costDetails.${key}`);
  }
}
