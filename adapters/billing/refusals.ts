import { DomainError } from '../../domain/errors.js';
import type { ConnectorCheck } from './connector.js';
import { rateLimited } from './pacer.js';

/** How a provider is spoken of. */
export interface ProviderWords {
  /** As people write it. */
  name: string;
  /** What the key has to be and where it is made; ends a sentence. */
  remedy: string;
  /** How every admin key begins; undefined where there is no such key. */
  adminKeyPrefix?: string;
  /** What asks, e.g. `the application`; `the key` where absent. */
  subject?: string;
  /**
   * The status that an answer means where the provider gives another one; `page`: the page asked for is no longer known.
   */
  statusOf?(status: number, text: string): number | 'page' | undefined;
  /** What a 404 means where it is no outage: ends a sentence. */
  notFoundMeans?: string;
  /** The setting that holds the base address. */
  baseUrlSetting: string;
}

export interface Refusal {
  status: number;
  /** The beginning of the answer's body; never quoted, it may hold a part of the key. */
  text: string;
  report: string;
  /** The request named a page. */
  hasCursor: boolean;
  /** Undefined where the credentials are no single key. */
  adminKey: string | undefined;
  retryAfterSeconds: number;
  saysRetryAfter: boolean;
  words: ProviderWords;
}

/** After an outage that does not say how long it lasts. */
export const OUTAGE_SECONDS = 30;

const MISSING_SCOPES = /missing scopes?:\s*([a-z]\w*(?:\.\w+)*(?:,\s*[a-z]\w*(?:\.\w+)*)*)/i;
const PARAMETER = /^[a-z_]{1,40}(?:\[\d{0,4}\])?$/;

/** An answer with another status than 200 as the failure that it means (adapters/billing/connector.ts). */
export function refusalOf(given: Refusal): DomainError {
  const meant = given.words.statusOf?.(given.status, given.text) ?? given.status;
  const isPage = meant === 'page';
  const refusal = { ...given, status: isPage ? given.status : meant };
  const { status, words, report } = refusal;
  if (status === 401 || status === 403) return credentialsRefused(refusal);
  if (status === 404 && words.notFoundMeans !== undefined) {
    return new DomainError(
      'credentials_refused',
      `${words.name} answered 404: ${words.notFoundMeans}; ${words.remedy}`,
    );
  }
  if (status === 429) {
    return rateLimited(`${words.name} limits requests (429 on ${report})`, refusal.retryAfterSeconds);
  }
  if (refusal.hasCursor && (isPage || (status === 400 && isAboutPage(refusal.text)))) {
    return new DomainError(
      'provider_paging_changed',
      `${words.name} no longer knows the page of ${report} that it named itself; the chunk is fetched from its beginning`,
    );
  }
  // A report that is documented and gone has been an outage before (2025-11-08), not an end.
  if (status >= 500 || status === 404 || status === 408 || status === 409 || status === 425) {
    return new DomainError('provider_unavailable', `${words.name} answered ${status} for ${report}`, {
      retryAfterSeconds: refusal.saysRetryAfter ? refusal.retryAfterSeconds : OUTAGE_SECONDS,
    });
  }
  if (status >= 300 && status < 400) {
    return new DomainError(
      'provider_answer_unreadable',
      `${words.name} answered ${status} for ${report}, a redirect, which is not followed; check ${words.baseUrlSetting}`,
    );
  }
  return new DomainError(
    'provider_answer_unreadable',
    `${words.name} answered ${status} for ${report}${parameterIn(refusal.text)}; the request is not what it expects`,
  );
}

function credentialsRefused({ status, text, report, adminKey, words }: Refusal): DomainError {
  const scopes = MISSING_SCOPES.exec(text)?.[1];
  const subject = words.subject ?? 'the key';
  const what = scopes
    ? `${subject} lacks the permission ${scopes} for ${report}`
    : status === 401
      ? `${subject} is not valid`
      : `${subject} may not read ${report}`;
  const prefix = words.adminKeyPrefix;
  const hint =
    prefix === undefined || adminKey === undefined || adminKey.startsWith(prefix)
      ? ''
      : ` The key given does not begin with ${prefix}, so it is no admin key.`;
  return new DomainError(
    'credentials_refused',
    `${words.name} answered ${status}: ${what}; ${words.remedy}.${hint}`,
  );
}

/** Both providers name the parameter, OpenAI in `error.param`, Anthropic at the beginning of `error.message`. */
function isAboutPage(text: string): boolean {
  const error = errorOf(text);
  return error.param === 'page' || /\bpage\b|\bcursor\b|\bnext_page\b/i.test(String(error.message ?? ''));
}

function parameterIn(text: string): string {
  const error = errorOf(text);
  const param = error.param ?? /^([a-z_]{1,40}(?:\[\d{0,4}\])?)[.:]/.exec(String(error.message ?? ''))?.[1];
  return typeof param === 'string' && PARAMETER.test(param) ? ` (parameter ${param})` : '';
}

function errorOf(text: string): { param?: unknown; message?: unknown } {
  try {
    const { error } = JSON.parse(text) as { error?: unknown };
    return typeof error === 'object' && error !== null ? error : {};
  } catch {
    return {};
  }
}

/** A check by its name, what it asks, and what is said when the answer is as it should be. */
export interface PlannedCheck {
  name: string;
  run(): Promise<string>;
}

/**
 * Runs the checks one after the other. A refusal and an answer that cannot be read fail the check with their sentence;
 * what is passing (an outage, a limit) is thrown, since it says nothing about the connection.
 */
export async function runChecks(checks: readonly PlannedCheck[]): Promise<ConnectorCheck[]> {
  const done: ConnectorCheck[] = [];
  for (const { name, run } of checks) {
    try {
      done.push({ name, ok: true, detail: await run() });
    } catch (error) {
      if (!(error instanceof DomainError)) throw error;
      if (error.code !== 'credentials_refused' && error.code !== 'provider_answer_unreadable') throw error;
      done.push({ name, ok: false, detail: error.message });
    }
  }
  return done;
}
