import { createHash } from 'node:crypto';

/** What a request says, apart from its headers: what makes a repeat the same request. */
export interface RequestWords {
  method: string;
  /** Of the endpoint, e.g. `/api/v1/events/{id}`. */
  path: string;
  params: Readonly<Record<string, string>>;
  query: Readonly<Record<string, string>>;
  mediaType: string;
  /** The parsed JSON body, or the digest of a streamed one; undefined where the endpoint reads none. */
  content: unknown;
}

/**
 * sha256 over what a request says. A JSON body counts by its value, so that a client which writes the same object with
 * its names in another order still repeats itself.
 */
export function fingerprintOf(words: RequestWords): Buffer {
  const { method, path, params, query, mediaType, content } = words;
  return createHash('sha256')
    .update(canonicalJson([method, path, params, query, mediaType, content ?? null]))
    .digest();
}

/** JSON with the names of each object in one order. The depth is bounded by what parsed it. */
function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const record = value as Record<string, unknown>;
  const fields = Object.keys(record)
    .sort()
    .map((name) => `${JSON.stringify(name)}:${canonicalJson(record[name])}`);
  return `{${fields.join(',')}}`;
}
