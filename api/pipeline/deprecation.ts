/** The shortest time between the word that something goes and its end. */
export const NOTICE_DAYS = 180;
const MS_PER_DAY = 86_400_000;

/** What is said of an endpoint that is to go. */
export interface Deprecation {
  /** Since when it should no longer be used: a UTC date, YYYY-MM-DD. */
  since: string;
  /** When it stops answering: a UTC date at least 180 days later. */
  sunset: string;
  /** Where people read what to do: an absolute address, or a path of this service. */
  link: string;
  /** What takes its place: a path of this service. */
  successor?: string;
}

/** Headers in the documents, with what they say. */
export const DEPRECATION_HEADER_DOCS: Readonly<Record<string, string>> = {
  Deprecation: 'Since when this should no longer be used: `@` and seconds since 1970 (RFC 9745)',
  Sunset: 'When this stops answering, an HTTP date (RFC 8594)',
  Link: 'What to do instead: `rel="deprecation"`, `rel="successor-version"`',
};

/**
 * Deprecation as a date of structured fields (RFC 9745, section 2.1), Sunset as an HTTP date (RFC 8594, section 3), and
 * links to what there is to read and to what takes its place (RFC 9745, section 3; RFC 5829).
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

/** Milliseconds since 1970; NaN for what is no date. */
function midnightOf(day: string): number {
  const millis = /^\d{4}-\d{2}-\d{2}$/.test(day) ? Date.parse(`${day}T00:00:00Z`) : Number.NaN;
  return Number.isNaN(millis) || !new Date(millis).toISOString().startsWith(day) ? Number.NaN : millis;
}

const ADDRESS = /^(?:https:\/\/|\/)[\x21\x23-\x3b\x3d\x3f-\x7e]+$/;

/**
 * Refuses endpoints that go sooner than was promised, or whose headers could not be written. Throws TypeError with their
 * names, so that the service does not start.
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
