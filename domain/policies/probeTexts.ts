import { PROMPT_SCAN_CHARS } from './policy.js';

const WORDS =
  'the of and a to in is you that it for on are with as this be have from or one had by word but not what all were when your can said there use each which do how their if will up other about out many then them write code key password token secret account email 2026 4111-1111 user@example.com'.split(
    ' ',
  );
const LETTERS = 'abcdefghijklmnopqrstuvwxyz';
const PRINTABLE = Array.from({ length: 95 }, (_, at) => String.fromCharCode(32 + at)).join('');
/** What a pattern says of itself and not of the text: escapes, counts, and signs of the syntax. */
const SYNTAX = /\\[pP]\{[^}]*\}|\\[pP].|\\.|\{\d+(?:,\d*)?\}|\[:\w+:\]|\(\?[a-zA-Z-]*[:)]|[()[\]{}|*+?^$.]/g;

/** A sequence that looks like chance and is the same each time: the same pattern is held against the same texts. */
function numbersFrom(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

/** As many characters as are searched of a prompt, drawn from parts of one or more. */
export function drawn(seed: number, parts: readonly string[] | string, glue = ''): string {
  const next = numbersFrom(seed);
  let text = '';
  while (text.length < PROMPT_SCAN_CHARS) text += `${parts[next(parts.length)]}${glue}`;
  return text.slice(0, PROMPT_SCAN_CHARS);
}

/** Texts against which every list of patterns is measured: as people write, one character, noise, words and numbers. */
export const COMMON_PROBES: readonly string[] = [
  drawn(1, WORDS, ' '),
  'a'.repeat(PROMPT_SCAN_CHARS),
  drawn(2, `${PRINTABLE}\n`),
  drawn(3, `${LETTERS}${LETTERS.toUpperCase()}0123456789   \n`),
];

/** Texts made of the patterns' own characters: where they begin to match again and again without coming to an end. */
export function ownProbes(patterns: readonly string[]): string[] {
  const literal = patterns
    .join(' ')
    .replace(SYNTAX, ' ')
    .replace(/[^\t\n\r\x20-\x7e]/g, '');
  const pieces = literal.split(' ').filter((piece) => piece !== '');
  const characters = [...new Set(literal)].join('');
  if (pieces.length === 0) return [];
  return [
    drawn(5, characters),
    drawn(6, [...pieces, ...pieces.map((piece) => piece.slice(0, -1)), ' ']),
    pieces.join('').repeat(PROMPT_SCAN_CHARS).slice(0, PROMPT_SCAN_CHARS),
  ];
}
