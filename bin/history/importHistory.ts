import { readFile, stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { convertRow, type HistorySource, type RowContext } from '../../adapters/history/convertRow.js';
import { readHistoryRows } from '../../adapters/history/rows.js';
import { parseKey } from '../../domain/access/keyRules.js';
import { DomainError } from '../../domain/errors.js';
import type { MapContext } from '../../domain/events/itemFault.js';
import { mapSdkEvents } from '../../domain/events/sdkEvents.js';
import { isoFromMicros, microsFromDate, parseInstant } from '../../domain/period.js';
import { PriceBook } from '../../domain/pricing/priceBook.js';
import { readPriceFile } from '../../domain/pricing/priceFile.js';
import type { Provider } from '../../domain/providers.js';
import { PROJECT_ROOT } from '../../platform/projectRoot.js';
import { StartError } from '../../platform/startError.js';
import { postTo, type ReceivedAnswer, type RunningService, reasonOf } from '../service/runningService.js';
import { count, newProgress, type Progress, progressPath, readProgress, writeProgress } from './progress.js';

/** Calls of one request; rows between two stored states of the progress, where few of them are calls. */
const CALLS_PER_REQUEST = 500;
const ROWS_PER_STEP = 20_000;
/** Longest body of one request, bytes: an eighth of what ingest takes by default. */
const BODY_BYTES_MAX = 2_097_152;
const EARLIEST_MICROS = 1_577_836_800_000_000n;
/** Answers after which the same request may succeed later. */
const PASSING: ReadonlySet<number> = new Set([429, 502, 503, 504]);
const TRIES_MAX = 12;
const RETRY_SECONDS_MAX = 60;

export interface HistoryImport {
  source: HistorySource;
  file: string;
  provider: Provider | undefined;
  cacheDir: string;
  now: () => Date;
}

interface WaitingCall {
  line: number;
  text: string;
}

/**
 * Sends the calls of an export to a running service, in the order of the file. The progress is stored after each
 * request that the service has committed; the next import of the file continues there. Rows that are sent again are
 * repeats, because their ids come from the export.
 * @throws StartError with the line of a file that cannot be read, or the reason of a refused request.
 */
export async function importHistory(service: RunningService, asked: HistoryImport): Promise<Progress> {
  const file = resolve(asked.file);
  const path = progressPath(asked.cacheDir, service.url, asked.source, file);
  const progress = await openProgress(service, file, path);
  const context = await mappingOf(asked);
  const sender = new Sender(service, progress, path);
  const done = progress.rows;
  let rows = 0;
  try {
    for await (const row of readHistoryRows(file)) {
      rows += 1;
      if (rows <= done) continue;
      const converted = convertRow(asked.source, row, context);
      if ('event' in converted) {
        const refused = mapSdkEvents([converted.event], context).rejections[0];
        if (refused) count(progress.faults, `${refused.reason}: ${refused.message}`, row.line);
        else await sender.add(row.line, converted.event);
      } else count(converted.isFault ? progress.faults : progress.skipped, converted.skipped, row.line);
      progress.rows = rows;
      if ((rows - done) % ROWS_PER_STEP === 0) await sender.flush();
    }
  } catch (error) {
    if (!(error instanceof DomainError)) throw error;
    await sender.flush();
    throw new StartError(
      `${asked.file}: ${error.message}. The ${progress.rows} rows before it are imported.`,
      {
        cause: error,
      },
    );
  }
  progress.isDone = true;
  await sender.flush();
  return progress;
}

/** @throws StartError for a file that cannot be read, or that another key has sent. */
async function openProgress(service: RunningService, file: string, path: string): Promise<Progress> {
  const found = await stat(file).catch(() => undefined);
  if (!found?.isFile()) throw new StartError(`${file} is no file that can be read.`);
  if (found.size === 0) throw new StartError(`${file} is empty.`);
  const keyId = parseKey(service.key)?.keyId;
  if (keyId === undefined) throw new StartError('TRUEUP_API_KEY is no key: give the whole text, tu_live_….');
  const known = await readProgress(path);
  const fresh = newProgress(keyId, found.size, found.mtimeMs);
  if (!known) return fresh;
  if (known.keyId !== keyId)
    throw new StartError(
      `${file} was imported with the key ${known.keyId}, and under another key its calls would count twice: use that key. To import it under this key all the same, delete ${path}.`,
    );
  const isSame = known.size === found.size && known.mtimeMs === found.mtimeMs;
  return isSame && !known.isDone ? known : fresh;
}

/** Reads the calls as ingest does, so that a fault is found with its line; the provider by the shipped price list. */
async function mappingOf({ provider, now }: HistoryImport): Promise<MapContext & RowContext> {
  const list = readPriceFile(JSON.parse(await readFile(join(PROJECT_ROOT, 'data', 'prices.json'), 'utf8')));
  const book = PriceBook.from(
    list.entries.map(({ model }) => ({ ...model, updatedAtMicros: 0n })),
    [],
  );
  return {
    nowMicros: microsFromDate(now()),
    oldestMicros: EARLIEST_MICROS,
    inferProvider: (model) => book.inferProvider(model),
    defaultProvider: provider,
  };
}

/** Gathers calls into requests, and stores the progress after each. */
class Sender {
  readonly #service: RunningService;
  readonly #progress: Progress;
  readonly #path: string;
  #waiting: WaitingCall[] = [];
  #bytes = 0;

  constructor(service: RunningService, progress: Progress, path: string) {
    this.#service = service;
    this.#progress = progress;
    this.#path = path;
  }

  async add(line: number, event: Record<string, unknown>): Promise<void> {
    const text = JSON.stringify(event);
    // The row of this call is not counted yet: a stored progress contains whole requests alone.
    if (this.#waiting.length >= CALLS_PER_REQUEST || this.#bytes + text.length > BODY_BYTES_MAX)
      await this.flush();
    this.#waiting.push({ line, text });
    this.#bytes += text.length + 1;
    const instant = parseInstant(String(event.timestamp));
    if (!instant) return;
    const time = isoFromMicros(instant.micros);
    const { firstTime, lastTime } = this.#progress;
    if (firstTime === '' || time < firstTime) this.#progress.firstTime = time;
    if (time > lastTime) this.#progress.lastTime = time;
  }

  async flush(): Promise<void> {
    const calls = this.#waiting;
    if (calls.length > 0) this.#note(calls, await this.#send(calls));
    this.#waiting = [];
    this.#bytes = 0;
    await writeProgress(this.#path, this.#progress);
  }

  async #send(calls: readonly WaitingCall[]): Promise<ReceivedAnswer> {
    const request = {
      path: '/api/v1/ingest/events',
      type: 'application/x-ndjson',
      body: calls.map(({ text }) => text).join('\n'),
    };
    for (let tries = 1; ; tries += 1) {
      const answer = await postTo(this.#service, request).catch((error: unknown) => {
        if (!(error instanceof StartError) || tries === TRIES_MAX) throw error;
        return undefined;
      });
      if (answer?.status === 202) return answer;
      if (answer && (!PASSING.has(answer.status) || tries === TRIES_MAX)) throw this.#refusal(calls, answer);
      const seconds = answer?.retryAfterSeconds ?? 2 ** Math.min(tries - 1, 5);
      await sleep(Math.min(seconds, RETRY_SECONDS_MAX) * 1_000);
    }
  }

  #refusal(calls: readonly WaitingCall[], answer: ReceivedAnswer): StartError {
    return new StartError(
      `The service refused the calls of line ${calls[0]?.line} and after: ${reasonOf(answer)}. Run the same command again to go on from there.`,
    );
  }

  #note(calls: readonly WaitingCall[], { text }: ReceivedAnswer): void {
    const { accepted, duplicates, rejected } = JSON.parse(text) as {
      accepted: number;
      duplicates: number;
      rejected: { index: number; code: string; message: string }[];
    };
    this.#progress.stored += accepted - duplicates;
    this.#progress.repeats += duplicates;
    for (const { index, code, message } of rejected)
      count(this.#progress.faults, `${code}: ${message}`, calls[index]?.line);
    const unnamed = calls.length - accepted - rejected.length;
    if (unnamed > 0) {
      const like = rejected[0] ? `${rejected[0].code}, as the calls before` : 'not counted (counted_scopes)';
      count(this.#progress.faults, like, undefined, unnamed);
    }
  }
}
