/** What the description of a credit says that it is for. */
/** Shorter references stand in too many texts by chance. */
const TICKET_CHARS_MIN = 4;

const MONTHS = [
  ...['january', 'february', 'march', 'april', 'may', 'june'],
  ...['july', 'august', 'september', 'october', 'november', 'december'],
];

/** Whether a text has a reference in it, as a word of its own, in whatever case. */
export function namesTicket(description: string, ticket: string): boolean {
  const wanted = ticket.trim().toLowerCase();
  if (wanted.length < TICKET_CHARS_MIN) return false;
  return hasWord(description.toLowerCase(), wanted);
}

/** Whether a text names a month that the period has days in: `2026-03`, `2026/03`, `03/2026`, `March 2026`, `Mar 2026`. */
export function namesPeriod(
  description: string,
  { periodStart, periodEnd }: { periodStart: string; periodEnd: string },
): boolean {
  const text = description.toLowerCase();
  return monthsBetween(periodStart, periodEnd).some((month) =>
    formsOf(month).some((form) => hasWord(text, form)),
  );
}

/** The months, `YYYY-MM`, from the one of a day to the one of another. */
function monthsBetween(from: string, to: string): string[] {
  const numberOf = (day: string) => Number(day.slice(0, 4)) * 12 + Number(day.slice(5, 7)) - 1;
  const first = numberOf(from);
  return Array.from({ length: Math.max(0, numberOf(to) - first + 1) }, (_, at) => {
    const month = first + at;
    return `${Math.floor(month / 12)}-${String((month % 12) + 1).padStart(2, '0')}`;
  });
}

function formsOf(month: string): string[] {
  const [year = '', number = ''] = month.split('-');
  const name = MONTHS[Number(number) - 1] ?? '';
  const short = name.slice(0, 3);
  return [
    ...[month, `${year}/${number}`, `${number}/${year}`, `${year}${number}`],
    ...[`${name} ${year}`, `${short} ${year}`, `${name}, ${year}`, `${short}-${year}`],
  ];
}

/** Whether a text has another in it with no letter and no digit right before and after it. */
function hasWord(text: string, word: string): boolean {
  for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + 1)) {
    if (!isWordCharacter(text[at - 1]) && !isWordCharacter(text[at + word.length])) return true;
  }
  return false;
}

const isWordCharacter = (character: string | undefined): boolean =>
  character !== undefined && /[\p{L}\p{N}]/u.test(character);
