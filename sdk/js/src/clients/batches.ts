import type { Recorder } from '../calls.js';
import type { Labels } from '../labels.js';
import { readAnthropic, readOpenAi } from './readings.js';
import { parse } from './tap.js';

/** Results of batches: one line for each call, at half the price. */

type Loose = Record<string, unknown>;

export interface BatchPlace {
  recorder: Recorder;
  labels: Labels;
  provider: string;
  baseUrl: string | undefined;
}

export interface KnownBatch {
  id: string;
  /** When the results were complete, seconds since 1970. */
  completedAt: number | undefined;
  /** The model of all its calls, where results do not name it. */
  model?: string | undefined;
}

/** Batches by their files of results. */
const batchesByFile = new Map<string, KnownBatch>();
const BATCHES_MAX = 10_000;

/** Remembers to which batch files of results belong; values that are no text are left out. */
export function noteFiles(files: readonly unknown[], batch: KnownBatch): void {
  for (const file of files) {
    if (typeof file !== 'string') continue;
    if (batchesByFile.size >= BATCHES_MAX) batchesByFile.clear();
    batchesByFile.set(file, batch);
  }
}

/** Undefined: the process has not seen the batch of this file. */
export function batchOf(fileId: string): KnownBatch | undefined {
  return batchesByFile.get(fileId);
}

/** Remembers the files of results of OpenAI's batches. */
export function noteBatch(value: unknown): void {
  const answer = (value ?? {}) as Loose;
  const batches = answer.object === 'list' && Array.isArray(answer.data) ? answer.data : [answer];
  for (const batch of batches as Loose[]) {
    if (batch?.object !== 'batch' || typeof batch.id !== 'string') continue;
    const completedAt = typeof batch.completed_at === 'number' ? batch.completed_at : undefined;
    noteFiles([batch.output_file_id, batch.error_file_id], { id: batch.id, completedAt });
  }
}

/** A line of the results of OpenAI or Mistral; other files have other lines, which are nothing here. */
export function recordOpenAiResult(line: string, fileId: string, place: BatchPlace): void {
  if (line.includes('"custom_id"')) recordOpenAiItem(parse(line), batchOf(fileId), fileId, place);
}

/** One result of OpenAI or Mistral. @param name of its batch or file */
export function recordOpenAiItem(
  value: unknown,
  batch: KnownBatch | undefined,
  name: string,
  place: BatchPlace,
): void {
  const item = value as Loose | undefined;
  const response = item?.response as { status_code?: unknown; body?: Loose } | undefined;
  if (typeof item?.id !== 'string' || typeof response?.body !== 'object' || response.body === null) return;
  const { body, status_code: status } = response;
  const reading = readOpenAi(body);
  const isOk = status === 200;
  // A line without a usage and a model is a refused request, which costs nothing.
  if (!isOk || reading.responseModel === undefined) return;
  const seconds = [body.created, body.created_at, batch?.completedAt].find(
    (value) => typeof value === 'number',
  );
  place.recorder.recordLater({
    ...reading,
    provider: place.provider,
    baseUrl: place.baseUrl,
    model: reading.responseModel,
    requestId: item.id,
    batchId: batch?.id,
    isBatch: true,
    at: seconds === undefined ? firstReadOf(name) : (seconds as number) * 1_000,
    status: 'ok',
    labels: place.labels,
  });
}

/** When results without a time of their own were first read in this process, by batch or file. */
const firstReadAt = new Map<string, number>();

/** Milliseconds since 1970; the same for every reading. */
export function firstReadOf(name: string): number {
  if (firstReadAt.size >= BATCHES_MAX) firstReadAt.clear();
  const at = firstReadAt.get(name) ?? Date.now();
  firstReadAt.set(name, at);
  return at;
}

/** A line of Anthropic's results. */
export function recordAnthropicResult(line: string, batchId: string, place: BatchPlace): void {
  const item = parse(line) as { result?: { type?: unknown; message?: unknown } } | undefined;
  if (item?.result?.type !== 'succeeded') return;
  const reading = readAnthropic(item.result.message);
  if (reading.responseModel === undefined) return;
  place.recorder.recordLater({
    ...reading,
    provider: place.provider,
    baseUrl: place.baseUrl,
    model: reading.responseModel,
    batchId,
    isBatch: true,
    at: firstReadOf(batchId),
    status: 'ok',
    labels: place.labels,
  });
}
