import fc from 'fast-check';

/**
 * Regular expressions as a tree, with a plain and slow definition of a match, which the product's results are compared
 * with.
 */
export type Tree =
  | { is: 'char'; char: string }
  | { is: 'any' }
  | { is: 'class'; chars: string; negated: boolean }
  | { is: 'begin' | 'end' | 'boundary' | 'notBoundary' | 'textBegin' | 'textEnd' }
  | { is: 'all' | 'either'; parts: Tree[] }
  | { is: 'repeated'; part: Tree; min: number; max: number };

export interface Pattern {
  tree: Tree;
  /** `(?i)`, `(?s)`, `(?m)` before it. */
  ignoresCase: boolean;
  dotMatchesNewline: boolean;
  isMultiline: boolean;
}

/** The pattern in RE2's syntax. */
export function writePattern({ tree, ignoresCase, dotMatchesNewline, isMultiline }: Pattern): string {
  const flags = `${ignoresCase ? 'i' : ''}${dotMatchesNewline ? 's' : ''}${isMultiline ? 'm' : ''}`;
  return `${flags === '' ? '' : `(?${flags})`}${write(tree)}`;
}

function write(tree: Tree): string {
  switch (tree.is) {
    case 'char':
      return quoted(tree.char);
    case 'any':
      return '.';
    case 'class':
      return `[${tree.negated ? '^' : ''}${[...tree.chars].map(quoted).join('')}]`;
    case 'begin':
      return '^';
    case 'end':
      return '$';
    case 'textBegin':
      return '\\A';
    case 'textEnd':
      return '\\z';
    case 'boundary':
      return '\\b';
    case 'notBoundary':
      return '\\B';
    case 'all':
      return tree.parts.map((part) => (part.is === 'either' ? `(?:${write(part)})` : write(part))).join('');
    case 'either':
      return tree.parts.map(write).join('|');
    case 'repeated':
      return `(${write(tree.part)})${countOf(tree)}`;
  }
}

function countOf({ min, max }: { min: number; max: number }): string {
  if (max === Number.POSITIVE_INFINITY) return min === 0 ? '*' : min === 1 ? '+' : `{${min},}`;
  return min === 0 && max === 1 ? '?' : `{${min},${max}}`;
}

function quoted(char: string): string {
  if (char === '\n') return '\\n';
  return /\w/.test(char) ? char : `\\${char}`;
}

/** The first place at which a match begins; undefined: no match. */
export function findPlainly(pattern: Pattern, text: string): number | undefined {
  for (let start = 0; start <= text.length; start += 1)
    if (endsOf(pattern, pattern.tree, text, start).size > 0) return start;
  return undefined;
}

/** Every place at which a match that begins at `at` can end. */
function endsOf(pattern: Pattern, tree: Tree, text: string, at: number): Set<number> {
  const one = (matches: boolean) => new Set(matches ? [at + 1] : []);
  const none = (holds: boolean) => new Set(holds ? [at] : []);
  const char = text[at];
  switch (tree.is) {
    case 'char':
      return one(char !== undefined && isSame(pattern, tree.char, char));
    case 'any':
      return one(char !== undefined && (pattern.dotMatchesNewline || char !== '\n'));
    case 'class':
      return one(
        char !== undefined && [...tree.chars].some((each) => isSame(pattern, each, char)) !== tree.negated,
      );
    case 'begin':
      return none(at === 0 || (pattern.isMultiline && text[at - 1] === '\n'));
    case 'end':
      return none(at === text.length || (pattern.isMultiline && char === '\n'));
    case 'textBegin':
      return none(at === 0);
    case 'textEnd':
      return none(at === text.length);
    case 'boundary':
      return none(isWord(text[at - 1]) !== isWord(char));
    case 'notBoundary':
      return none(isWord(text[at - 1]) === isWord(char));
    case 'either':
      return new Set(tree.parts.flatMap((part) => [...endsOf(pattern, part, text, at)]));
    case 'all':
      return endsOfAll(pattern, tree.parts, text, new Set([at]));
    case 'repeated':
      return endsOfRepeated(pattern, tree, text, at);
  }
}

function endsOfAll(
  pattern: Pattern,
  [part, ...others]: Tree[],
  text: string,
  from: Set<number>,
): Set<number> {
  if (part === undefined) return from;
  const ends = new Set([...from].flatMap((at) => [...endsOf(pattern, part, text, at)]));
  return endsOfAll(pattern, others, text, ends);
}

function endsOfRepeated(
  pattern: Pattern,
  { part, min, max }: { part: Tree; min: number; max: number },
  text: string,
  at: number,
): Set<number> {
  let reached = new Set([at]);
  const ends = new Set<number>(min === 0 ? [at] : []);
  // More repetitions than characters can only repeat the empty match.
  for (let times = 1; times <= Math.min(max, min + text.length + 1); times += 1) {
    reached = new Set([...reached].flatMap((end) => [...endsOf(pattern, part, text, end)]));
    if (times >= min) for (const end of reached) ends.add(end);
    if (reached.size === 0) break;
  }
  return ends;
}

function isSame({ ignoresCase }: Pattern, one: string, other: string): boolean {
  return ignoresCase ? one.toLowerCase() === other.toLowerCase() : one === other;
}

function isWord(char: string | undefined): boolean {
  return char !== undefined && /^\w$/.test(char);
}

/** Of few characters, so that patterns often match. */
export const CHARS = ['a', 'b', 'A', '7', ' ', '-', '\n', '\r', '\t'];
const char = fc.constantFrom(...CHARS);

const { tree } = fc.letrec<{ tree: Tree }>((tie) => ({
  tree: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    char.map((one): Tree => ({ is: 'char', char: one })),
    fc.constant<Tree>({ is: 'any' }),
    fc
      .record({ chars: fc.uniqueArray(char, { minLength: 1, maxLength: 3 }), negated: fc.boolean() })
      .map(({ chars, negated }): Tree => ({ is: 'class', chars: chars.join(''), negated })),
    fc
      .constantFrom('begin', 'end', 'textBegin', 'textEnd', 'boundary', 'notBoundary')
      .map((is): Tree => ({ is }) as Tree),
    fc
      .record({
        is: fc.constantFrom('all', 'all', 'either'),
        parts: fc.array(tie('tree'), { minLength: 1, maxLength: 4 }),
      })
      .map((one): Tree => one as Tree),
    fc
      .record({
        part: tie('tree'),
        min: fc.integer({ min: 0, max: 3 }),
        more: fc.constantFrom(0, 1, 2, Number.POSITIVE_INFINITY),
      })
      .map(({ part, min, more }): Tree => ({ is: 'repeated', part, min, max: Math.max(1, min + more) })),
  ),
}));

/** Patterns of every kind of part. */
export const anyPattern: fc.Arbitrary<Pattern> = fc.record({
  tree,
  ignoresCase: fc.boolean(),
  dotMatchesNewline: fc.boolean(),
  isMultiline: fc.boolean(),
});

/** Texts of the same characters, and of some that are stripped away. */
export const anyText = (maxLength: number): fc.Arbitrary<string> =>
  fc.string({ unit: fc.constantFrom(...CHARS, 'é', '\u0000', '😀', '\u200b'), maxLength });
