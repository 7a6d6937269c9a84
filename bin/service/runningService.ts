import type { Config } from '../../platform/config.js';
import { StartError } from '../../platform/startError.js';

/** A service that runs anywhere, and the key with which a command uses it. */
export interface RunningService {
  /** Address without a trailing slash. */
  url: string;
  key: string;
}

export interface SentRequest {
  path: string;
  /** Of a text; a form has its own. */
  type?: string;
  body: string | FormData;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

export interface ReceivedAnswer {
  status: number;
  text: string;
  /** Seconds of Retry-After; undefined: the answer has none. */
  retryAfterSeconds: number | undefined;
}

/** Longest wait for an answer, milliseconds. */
const ANSWER_LIMIT_MS = 120_000;

/** The service of TRUEUP_URL and TRUEUP_API_KEY. @throws StartError without a key */
export function runningServiceOf(config: Config, purpose: string): RunningService {
  const { serviceUrl: url, serviceKey: key } = config;
  if (key === undefined)
    throw new StartError(
      `TRUEUP_API_KEY is not set: ${purpose} needs a key of the service at ${url}, which ./trueup keys create prints.`,
    );
  return { url, key };
}

/** POSTs to the service. @throws StartError when it cannot be reached */
export function postTo(
  service: RunningService,
  { path, type, body, headers = {}, signal }: SentRequest,
): Promise<ReceivedAnswer> {
  const init = { method: 'POST', body, headers: { ...headers, ...(type ? { 'content-type': type } : {}) } };
  return ask(service, path, init, signal);
}

/** GETs from the service. @throws StartError when it cannot be reached */
export function getFrom(service: RunningService, path: string): Promise<ReceivedAnswer> {
  return ask(service, path, { method: 'GET', headers: {} });
}

interface Init {
  method: string;
  headers: Record<string, string>;
  body?: string | FormData;
}

async function ask(
  { url, key }: RunningService,
  path: string,
  init: Init,
  signal?: AbortSignal,
): Promise<ReceivedAnswer> {
  const limit = AbortSignal.timeout(ANSWER_LIMIT_MS);
  try {
    const response = await fetch(url + path, {
      ...init,
      headers: { ...init.headers, authorization: `Bearer ${key}` },
      redirect: 'error',
      signal: signal === undefined ? limit : AbortSignal.any([limit, signal]),
    });
    const text = await response.text();
    const seconds = Number(response.headers.get('retry-after') ?? Number.NaN);
    const retryAfterSeconds = Number.isFinite(seconds) && seconds >= 0 ? seconds : undefined;
    return { status: response.status, text, retryAfterSeconds };
  } catch (error) {
    throw new StartError(
      `The service at ${url} cannot be reached (${causeOf(error)}): start it with npm start, or set TRUEUP_URL to its address.`,
      { cause: error },
    );
  }
}

function causeOf(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  if (!(cause instanceof Error)) return 'no reason was given';
  const code = (cause as { code?: unknown }).code;
  return typeof code === 'string' ? code : cause.message;
}

/** The reason in an answer's problem (RFC 9457), else its status. */
export function reasonOf({ status, text }: ReceivedAnswer): string {
  try {
    const { detail } = JSON.parse(text) as { detail?: unknown };
    if (typeof detail === 'string') return detail;
  } catch {
    // Not an answer of the service itself: a proxy, for example.
  }
  return `the answer is ${status}; set TRUEUP_URL to the address of the service`;
}
