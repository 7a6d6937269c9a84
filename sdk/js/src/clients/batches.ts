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

/** OpenAI's batches by their files of results: id, and when the results were complete, seconds. */
const batchesByFile = new Map<string, { id: string; completedAt: number | undefined }>();
const BATCHES_MAX = 10_000;

/** Remembers to which batch a file of results belongs. */
export function noteBatch(value: unknown): void {
  const answer = (value ?? {}) as Loose;
  const batches = answer.object === 'list' && Array.isArray(answer.data) ? answer.data : [answer];
  for (const batch of batches as Loose[]) {
    if (batch?.object !== 'batch' || typeof batch.id !== 'string') continue;
    const completedAt = typeof batch.completed_at === 'number' ? batch.completed_at : undefined;
    for (const file of [batch.output_file_id, batch.error_file_id]) {
      if (typeof file !== 'string') continue;
      if (batchesByFile.size >= BATCHES_MAX) batchesByFile.clear();
      batchesByFile.set(file, { id: batch.id, completedAt });
    }
  }
}

/** A line of OpenAI's results; other files have other lines, which are nothing here. */
export function recordOpenAiResult(line: string, fileId: string, place: BatchPlace): void {
  if (!line.includes('"custom_id"')) return;
  const item = parse(line) as Loose | undefined;
  const response = item?.response as { status_code?: unknown; body?: Loose } | undefined;
  if (typeof item?.id !== 'string' || typeof response?.body !== 'object' || response.body === null) return;
  const batch = batchesByFile.get(fileId);
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
    at: seconds === undefined ? Date.now() : (seconds as number) * 1_000,
    status: 'ok',
    labels: place.labels,
  });
}

/** When results of a batch of Anthropic were first read in this process: a message has no time of its own. */
const firstReadAt = new Map<string, number>();

/** A line of Anthropic's results. */
export function recordAnthropicResult(line: string, batchId: string, place: BatchPlace): void {
  const item = parse(line) as { result?: { type?: unknown; message?: unknown } } | undefined;
  if (item?.result?.type !== 'succeeded') return;
  const reading = readAnthropic(item.result.message);
  if (reading.responseModel === undefined) return;
  if (firstReadAt.size >= BATCHES_MAX) firstReadAt.clear();
  const at = firstReadAt.get(batchId) ?? Date.now();
  firstReadAt.set(batchId, at);
  place.recorder.recordLater({
    ...reading,
    provider: place.provider,
    baseUrl: place.baseUrl,
    model: reading.responseModel,
    batchId,
    isBatch: true,
    at,
    status: 'ok',
    labels: place.labels,
  });
}
