/** An entity tag with or without the mark of a weak one (RFC 9110, 8.8.3): the quoted part is what is compared. */
const TAGS = /(?:W\/)?("[\x21\x23-\x7e\x80-\xff]*")/g;

/**
 * True when a client's copy is the current one: one of the tags in its If-None-Match is `etag`, compared as weak ones
 * are, or it names any (RFC 9110, 13.1.2). What is no list of tags matches nothing.
 */
export function matchesEntityTag(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false;
  if (ifNoneMatch.trim() === '*') return true;
  return [...ifNoneMatch.matchAll(TAGS)].some(([, tag]) => tag === etag);
}
