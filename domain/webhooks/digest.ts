import { microsOfDay, shiftDay } from '../period.js';
import { localDayAt, zoneMinutesAt } from '../reports/schedule.js';
import { DIGEST_MESSAGE_TYPE, messageBody } from './messages.js';
import { type NoticeText, plainText } from './notices.js';

/** Local hour at which digests are sent. */
export const DIGEST_HOUR = 8;
/** Most notices with a line of their own. */
export const DIGEST_LINES_MAX = 50;
const LINE_CHARS_MAX = 240;

/** The digest hour of a local day. Where the clock leaves the hour out, the time an hour later by the old clock. */
function digestMicrosOf(localDay: string, zone: string): bigint {
  const local = microsOfDay(localDay) + BigInt(DIGEST_HOUR) * 3_600_000_000n;
  const guess = local - BigInt(zoneMinutesAt(zone, local)) * 60_000_000n;
  return local - BigInt(zoneMinutesAt(zone, guess)) * 60_000_000n;
}

/** The latest digest hour that is not in the future, and the one after it, in an organization's zone. */
export function digestTimes(zone: string, nowMicros: bigint): { lastMicros: bigint; nextMicros: bigint } {
  const localDay = localDayAt(zone, nowMicros);
  const at = (days: number) => digestMicrosOf(shiftDay(localDay, days), zone);
  const today = at(0);
  return today <= nowMicros
    ? { lastMicros: today, nextMicros: at(1) }
    : { lastMicros: at(-1), nextMicros: today };
}

/** A notice with a line in a digest. */
export interface DigestLine extends NoticeText {
  message_id: string;
  type: string;
}

export interface DigestData {
  webhook_endpoint_id: string;
  /** All notices, those without a line included. */
  count: number;
  notices: readonly DigestLine[];
}

/** The body of a digest: the first notices with a line each, and the count of all. */
export function digestBody(timestamp: string, data: DigestData): string {
  const notices = data.notices.slice(0, DIGEST_LINES_MAX).map((line) => ({
    ...line,
    sentence: plainText(line.sentence, LINE_CHARS_MAX),
  }));
  return messageBody(DIGEST_MESSAGE_TYPE, timestamp, { ...data, notices });
}
