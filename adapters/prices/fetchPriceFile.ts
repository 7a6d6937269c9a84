import { DomainError } from '../../domain/errors.js';
import { type SafeFetch, SafeFetchError } from '../outbound/safeFetch.js';

/** Bytes; the largest known file has 2 MB. Nothing is inflated, so this bounds the memory too. */
export const PRICE_FILE_BYTES_MAX = 5_242_880;
const FETCH_MS = 60_000;
const ETAG_CHARS_MAX = 512;

export interface PriceFileRequest {
  url: string;
  /** Of the stored file; undefined: there is none. */
  etag: string | undefined;
  signal?: AbortSignal;
}

/** undefined: the stored file is still current. */
export type FetchPriceFile = (
  request: PriceFileRequest,
) => Promise<{ content: Buffer; etag: string | undefined } | undefined>;

/**
 * Fetches a public price list through the only client for addresses that users set. Error: provider_unavailable where a
 * retry may help, else provider_answer_unreadable.
 */
export function fetchPriceFileBy(outbound: Pick<SafeFetch, 'send'>, totalMs = FETCH_MS): FetchPriceFile {
  return async ({ url, etag, signal }) => {
    const answer = await outbound
      .send({
        method: 'GET',
        url,
        headers: { accept: 'application/json', ...(etag === undefined ? {} : { 'if-none-match': etag }) },
        answerBytesMax: PRICE_FILE_BYTES_MAX,
        totalMs,
        ...(signal ? { signal } : {}),
      })
      .catch((error: unknown) => {
        throw error instanceof SafeFetchError ? failureOf(error) : error;
      });
    const { status, headers, body, isCut } = answer;
    if (status === 304 && etag !== undefined) return undefined;
    if (status >= 300 && status < 400)
      throw lasting(`it redirects (${status}), which is not followed; set the address that it leads to`);
    if (status === 429 || status >= 500)
      throw new DomainError('provider_unavailable', `the price list is not available now (${status})`);
    if (status !== 200) throw lasting(`it answered ${status} instead of the price list`);
    if (isCut) throw lasting(`the price list is larger than ${PRICE_FILE_BYTES_MAX} bytes`);
    if (!['', 'identity'].includes(headers['content-encoding'] ?? ''))
      throw lasting('the price list is compressed although no compression was requested');
    return { content: body, etag: headers.etag?.slice(0, ETAG_CHARS_MAX) };
  };
}

function failureOf({ fault, message }: SafeFetchError): DomainError {
  return fault === 'refused' ? lasting(message) : new DomainError('provider_unavailable', message);
}

const lasting = (message: string) => new DomainError('provider_answer_unreadable', message);
