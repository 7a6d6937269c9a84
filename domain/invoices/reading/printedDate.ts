import { parseInstant, shiftDay } from '../../period.js';

/** A day or a range of days as printed, with its characters in the text. */
export interface PrintedDate {
  /** UTC days, both inclusive; the same day twice for a single date. */
  first: string;
  last: string;
  isRange: boolean;
  start: number;
  end: number;
}

export type DateOrder = 'day_first' | 'month_first';

/** Beginnings of the names of months in English, German, French, Spanish, Italian and Dutch. */
const MONTHS: readonly RegExp[] = [
  /^(?:jan|janv|januar|ene|gen)/,
  /^(?:feb|fév|fev)/,
  /^(?:mar(?!ch\w)|mär|mrz|maa|mrt)/,
  /^(?:apr|avr|abr)/,
  /^(?:may|mai|mag|mei)/,
  /^(?:jun|juin|giu)/,
  /^(?:jul|juil|lug)/,
  /^(?:aug|aoû|aou|ago)/,
  /^(?:sep|set)/,
  /^(?:oct|okt|ott)/,
  /^(?:nov)/,
  /^(?:dec|dez|déc|dic)/,
];
const MONTH =
  '(?:jan(?:uary|uar|uari|vier|v)?|ene(?:ro)?|gen(?:naio)?|feb(?:ruary|ruar|ruari|rero|braio)?|f[ée]v(?:rier)?|mar(?:ch|s|zo)?|märz?|mrz|maart|mrt|apr(?:il|ile)?|avr(?:il)?|abr(?:il)?|may(?:o)?|mai|mag(?:gio)?|mei|jun(?:e|i|io)?|juin|giu(?:gno)?|jul(?:y|i|io)?|juil(?:let)?|lug(?:lio)?|aug(?:ust|ustus)?|ao[ûu]t|ago(?:sto)?|sept?(?:ember|embre|iembre)?|set(?:tembre)?|o[ck]t(?:ober|obre|ubre)?|ott(?:obre)?|nov(?:ember|embre|iembre)?|de[cz](?:ember)?|d[ée]c(?:embre)?|dic(?:iembre|embre)?)';
const YEAR = '(?:20\\d\\d)';
const DAY = '(?:0?[1-9]|[12]\\d|3[01])';
const DASH = '(?:\\s*(?:[-\u2010-\u2015\u2212~\\0]|to|through|until|thru|bis|au|al|a|t/m)\\s*)';
/** A lost dash leaves only spaces between the dates of a range. */
const LOST_DASH =
  '(?:\\s*[-\u2010-\u2015\u2212~\\0]\\s*|\\s+(?:to|through|until|thru|bis|au|al|t/m)\\s+|\\s+)';

const named = (name: string) =>
  `(?:(?<${name}m1>${MONTH})\\.?\\s*(?<${name}d1>${DAY})(?:st|nd|rd|th)?(?:\\s*,)?\\s*(?<${name}y1>${YEAR})|(?<${name}d2>${DAY})(?:st|nd|rd|th|\\.)?[\\s-]*(?:de\\s)?(?<${name}m2>${MONTH})\\.?[\\s,-]*(?:de\\s)?(?<${name}y2>${YEAR})|(?<${name}y3>${YEAR})[-/.](?<${name}n3>\\d{1,2})[-/.](?<${name}d3>\\d{1,2})|(?<${name}y5>${YEAR})[ \\0\u00ad\u2010-\u2015](?<${name}n5>[01]\\d)[ \\0\u00ad\u2010-\u2015](?<${name}d5>[0-3]\\d)|(?<${name}p4>\\d{1,2})(?<${name}s4>[-/.])(?<${name}q4>\\d{1,2})\\k<${name}s4>(?<${name}y4>${YEAR}|\\d\\d))`;

const FORMS: readonly [
  RegExp,
  (parts: Parts, order: DateOrder, year: number | undefined) => [string, string] | undefined,
][] = [
  // Aug 1, 2026 – Aug 31, 2026
  [
    form(`${named('a')}${LOST_DASH}${named('b')}`),
    (parts, order) => pair(dayAt(parts, 'a', order), dayAt(parts, 'b', order)),
  ],
  // Aug 23 – Sep 23, 2026
  [
    form(
      `(?<m>${MONTH})\\.?\\s*(?<d>${DAY})${LOST_DASH}(?<n>${MONTH})\\.?\\s*(?<e>${DAY})(?:\\s*,)?\\s*(?<y>${YEAR})`,
    ),
    ({ m = '', d = '', n = '', e = '', y = '' }) => {
      const last = dayOfParts(y, monthOf(n), e);
      const isSameYear = monthOf(m) <= monthOf(n);
      return pair(dayOfParts(isSameYear ? y : String(Number(y) - 1), monthOf(m), d), last);
    },
  ],
  // Aug 1 – 31, 2026
  [
    form(`(?<m>${MONTH})\\.?\\s*(?<d>${DAY})${DASH}(?<e>${DAY})(?:\\s*,)?\\s*(?<y>${YEAR})`),
    ({ m = '', d = '', e = '', y = '' }) => pair(dayOfParts(y, monthOf(m), d), dayOfParts(y, monthOf(m), e)),
  ],
  // 23 Aug – 23 Sep 2026
  [
    form(
      `(?<d>${DAY})\\.?\\s*(?<m>${MONTH})\\.?${LOST_DASH}(?<e>${DAY})\\.?\\s*(?<n>${MONTH})\\.?\\s*,?\\s*(?<y>${YEAR})`,
    ),
    ({ d = '', m = '', e = '', n = '', y = '' }) =>
      pair(
        dayOfParts(monthOf(m) <= monthOf(n) ? y : String(Number(y) - 1), monthOf(m), d),
        dayOfParts(y, monthOf(n), e),
      ),
  ],
  // 1 – 31 August 2026, 1.–31. August 2026
  [
    form(`(?<d>${DAY})\\.?${DASH}(?<e>${DAY})\\.?\\s*(?<m>${MONTH})\\.?\\s*,?\\s*(?<y>${YEAR})`),
    ({ d = '', e = '', m = '', y = '' }) => pair(dayOfParts(y, monthOf(m), d), dayOfParts(y, monthOf(m), e)),
  ],
  [form(named('a')), (parts, order) => pair(dayAt(parts, 'a', order), dayAt(parts, 'a', order))],
  // August 2026
  [form(`(?<m>${MONTH})\\.?\\s*,?\\s*(?<y>${YEAR})`), ({ m = '', y = '' }) => wholeMonth(y, monthOf(m))],
  // Aug 1 – Aug 31
  [
    form(`(?<m>${MONTH})\\.?\\s*(?<d>${DAY})${LOST_DASH}(?<n>${MONTH})\\.?\\s*(?<e>${DAY})`),
    ({ m = '', d = '', n = '', e = '' }, _, year) =>
      year === undefined
        ? undefined
        : pair(
            dayOfParts(String(monthOf(m) <= monthOf(n) ? year : year - 1), monthOf(m), d),
            dayOfParts(String(year), monthOf(n), e),
          ),
  ],
];

type Parts = Record<string, string | undefined>;

function form(source: string): RegExp {
  return new RegExp(`(?<![\\p{L}\\d])${source}(?![\\p{L}\\d])`, 'iu');
}

/** The first date or range of a text; longer forms have precedence. `year` applies to ranges without a year. */
export function findDate(text: string, order: DateOrder, year?: number): PrintedDate | undefined {
  // Recognition confuses a lone 1 with a letter.
  const mended = text.replace(/(?<=\p{L}{3}\.?\s+)[Il|](?=[\s,-])/gu, '1');
  for (const [pattern, daysOf] of FORMS) {
    const match = pattern.exec(mended);
    const days = match && daysOf(match.groups ?? {}, order, year);
    if (!match || !days) continue;
    const [first, last] = days;
    return { first, last, isRange: first !== last, start: match.index, end: match.index + match[0].length };
  }
  return undefined;
}

function pair(first: string | undefined, last: string | undefined): [string, string] | undefined {
  return first !== undefined && last !== undefined && first <= last ? [first, last] : undefined;
}

function wholeMonth(year: string, month: number): [string, string] | undefined {
  const first = dayOfParts(year, month, '1');
  const next = month === 12 ? dayOfParts(String(Number(year) + 1), 1, '1') : dayOfParts(year, month + 1, '1');
  return first === undefined || next === undefined ? undefined : [first, shiftDay(next, -1)];
}

function dayAt(parts: Parts, name: string, order: DateOrder): string | undefined {
  const part = (key: string) => parts[`${name}${key}`];
  const [m1, d1, y1] = [part('m1'), part('d1'), part('y1')];
  if (m1 && d1 && y1) return dayOfParts(y1, monthOf(m1), d1);
  const [d2, m2, y2] = [part('d2'), part('m2'), part('y2')];
  if (d2 && m2 && y2) return dayOfParts(y2, monthOf(m2), d2);
  const [y3, n3, d3] = [part('y3') ?? part('y5'), part('n3') ?? part('n5'), part('d3') ?? part('d5')];
  if (y3 && n3 && d3) return dayOfParts(y3, Number(n3), d3);
  const [p = '', q = '', y = ''] = [part('p4'), part('q4'), part('y4')];
  const year = y.length === 2 ? `20${y}` : y;
  const dayFirst = order === 'day_first' || part('s4') === '.';
  const usual = dayFirst ? dayOfParts(year, Number(q), p) : dayOfParts(year, Number(p), q);
  return usual ?? (dayFirst ? dayOfParts(year, Number(p), q) : dayOfParts(year, Number(q), p));
}

/** 1 to 12; 0 for a word that is no month. */
function monthOf(word: string): number {
  return MONTHS.findIndex((month) => month.test(word.toLowerCase())) + 1;
}

function dayOfParts(year: string, month: number, day: string): string | undefined {
  const text = `${year}-${String(month).padStart(2, '0')}-${day.padStart(2, '0')}`;
  return parseInstant(text)?.dateOnly ? text : undefined;
}

/** Order of day and month in a document's dates with slashes: a part above 12 is a day. Undefined without one. */
export function dateOrderOf(texts: readonly string[]): DateOrder | undefined {
  for (const text of texts)
    for (const [, first, second] of text.matchAll(/(?<!\d)(\d{1,2})\/(\d{1,2})\/(?:20)?\d\d(?!\d)/g)) {
      if (Number(first) > 12 && Number(second) <= 12) return 'day_first';
      if (Number(second) > 12 && Number(first) <= 12) return 'month_first';
    }
  return undefined;
}
