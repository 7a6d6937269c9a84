/** Least days between the deprecation and the sunset of an endpoint. */
export const NOTICE_DAYS = 180;
const MS_PER_DAY = 86_400_000;

/** Deprecation of an endpoint. */
export interface Deprecation {
  /** Date of deprecation in UTC, YYYY-MM-DD. */
  since: string;
  /** Date in UTC on which the endpoint stops answering, at least 180 days after `since`. */
  sunset: string;
  /** Documentation of the migration: an absolute address, or a path of this service. */
  link: string;
  /** The replacement: a path of this service. */
  successor?: string;
}

/** Descriptions of the headers in the OpenAPI document. */
export const DEPRECATION_HEADER_DOCS: Readonly<Record<string, string>> = {
  Deprecation: 'Since when this should no longer be used: `@` and seconds since 1970 (RFC 9745)',
  Sunset: 'When this stops answering, an HTTP date (RFC 8594)',
  Link: 'What to do instead: `rel="deprecation"`, `rel="successor-version"`',
};

/**
 * Deprecation as a date of structured fields (RFC 9745, section 2.1), Sunset as an HTTP date (RFC 8594, section 3), and
 * links to the documentation and the successor (RFC 9745, section 3; RFC 5829).
 */
export function deprecationHeaders({ since, sunset, link, successor }: Deprecation): Record<string, string> {
  const links = [`<${link}>; rel="deprecation"; type="text/html"`];
  if (successor !== undefined) links.push(`<${successor}>; rel="successor-version"`);
  return {
    Deprecation: `@${midnightOf(since) / 1_000}`,
    Sunset: new Date(midnightOf(sunset)).toUTCString(),
    Link: links.join(', '),
  };
}

/** Milliseconds since 1970; NaN for an invalid date. */
function midnightOf(day: string): number {
  const millis = /^\d{4}-\d{2}-\d{2}$/.test(day) ? Date.parse(`${day}T00:00:00Z`) : Number.NaN;
  return Number.isNaN(millis) || !new Date(millis).toISOString().startsWith(day) ? Number.NaN : millis;
}

const ADDRESS = /^(?:https:\/\/|\/)[\x21\x23-\x3b\x3d\x3f-\x7e]+$/;

/**
 * Throws TypeError with the names of endpoints whose notice is too short or whose headers would be invalid, so that the
 * service does not start.
 */
export function assertNotice(
  endpoints: readonly { operationId: string; deprecated?: Deprecation | undefined }[],
): void {
  const hasty = endpoints.filter(({ deprecated }) => deprecated !== undefined && !isFair(deprecated));
  if (hasty.length === 0) return;
  const names = hasty.map(({ operationId }) => operationId).join(', ');
  throw new TypeError(
    `the notice of ${names} is not as promised: since and sunset are dates (YYYY-MM-DD), ${NOTICE_DAYS} days apart or more, and link and successor addresses or paths`,
  );
}

function isFair({ since, sunset, link, successor }: Deprecation): boolean {
  const days = (midnightOf(sunset) - midnightOf(since)) / MS_PER_DAY;
  return days >= NOTICE_DAYS && ADDRESS.test(link) && (successor === undefined || ADDRESS.test(successor));
}
