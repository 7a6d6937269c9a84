import { StartError } from '../../../platform/startError.js';

/** One organization's way into a running API, as a customer's own program would have it. */
export interface ServiceClient {
  /** Address of the API, without a path. */
  base: string;
  key: string;
}

// biome-ignore lint/suspicious/noExplicitAny: answers are the API's own, whose schemas its tests hold
type Json = any;

export interface Answer {
  status: number;
  body: Json;
}

const REQUEST_LIMIT_MS = 120_000;
/** Answers that mean "in a moment". */
const PASSING: ReadonlySet<number> = new Set([429, 502, 503]);
const TRIES_MAX = 20;
const RETRY_MS = 500;
const POLL_MS = 300;
const OVER: ReadonlySet<string> = new Set(['succeeded', 'partial', 'failed', 'cancelled']);

/** One request; what is refused for a moment is asked again. */
export async function ask(
  client: ServiceClient,
  method: 'GET' | 'POST' | 'PUT',
  path: string,
  body?: object | FormData,
): Promise<Answer> {
  const isForm = body instanceof FormData;
  const init = {
    method,
    headers: {
      authorization: `Bearer ${client.key}`,
      ...(body === undefined || isForm ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: isForm ? body : JSON.stringify(body) }),
  };
  for (let tries = 1; ; tries += 1) {
    const signal = AbortSignal.timeout(REQUEST_LIMIT_MS);
    const response = await fetch(client.base + path, { ...init, signal });
    const text = await response.text();
    const isJson = /json/.test(response.headers.get('content-type') ?? '');
    const answer = { status: response.status, body: isJson && text !== '' ? JSON.parse(text) : text };
    if (!PASSING.has(answer.status) || tries === TRIES_MAX) return answer;
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }
}

/**
 * The answer's body.
 * @throws StartError with the API's own sentence when the status is none of `wanted`.
 */
export function bodyOf(answer: Answer, what: string, wanted: readonly number[]): Json {
  if (wanted.includes(answer.status)) return answer.body;
  const said = answer.body?.detail ?? answer.body?.title ?? '';
  throw new StartError(`${what} was answered with ${answer.status}: ${said || 'no reason was given'}`);
}

/**
 * Asks until a run is over; `onProgress` is told how far it is.
 * @throws StartError when it did not end well.
 */
export async function waitForRun(
  client: ServiceClient,
  statusUrl: string,
  what: string,
  onProgress: (done: number, total: number) => void = () => undefined,
): Promise<Json> {
  for (;;) {
    const run = bodyOf(await ask(client, 'GET', statusUrl), what, [200]);
    if (OVER.has(run.status)) {
      if (run.status !== 'succeeded')
        throw new StartError(`${what} ended ${run.status}: ${run.error?.message ?? 'no reason was given'}`);
      return run;
    }
    onProgress(Number(run.progress?.done ?? 0), Number(run.progress?.total ?? 0));
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}
