/** A repetition with its counts, as RE2 reads it; anything else behind a brace is the brace itself. */
const COUNTED = /^\{(\d{1,4})(,(\d{0,4}))?\}/;
/** A named class, a code point or an octal number after its letter. */
const LONG_ESCAPE = /^\\(?:[pP]\{[^}]*\}|[pP].|x\{[0-9A-Fa-f]+\}|x[0-9A-Fa-f]{2}|[0-7]{1,3}|.)/s;
/** What stands behind `(?`: flags, a group that captures nothing, a name. */
const GROUP_HEAD = /^\(\?(?:P?<[^>]*>|[a-zA-Z-]*[:)]?)/;

interface Frame {
  /** Instructions of what was read of the group. */
  total: number;
  /** Those of its last part, which a repetition repeats. */
  last: number;
}

/**
 * How many instructions a pattern compiles to, about, told from its text: a pattern of a few characters can compile to
 * tens of thousands, and to find that out by compiling it takes a second. Never less than half of what it is.
 */
export function estimateProgramSize(pattern: string): number {
  const frames: Frame[] = [];
  let frame: Frame = { total: 2, last: 0 };
  const atom = (size: number) => {
    frame.total += size;
    frame.last = size;
  };
  for (let at = 0; at < pattern.length; ) {
    const rest = pattern.slice(at);
    const head = rest[0] as string;
    const counted = head === '{' ? COUNTED.exec(rest) : null;
    if (counted) {
      repeat(frame, Number(counted[1]), counted[2], counted[3]);
      at += counted[0].length;
    } else if (rest.startsWith('\\Q')) {
      const end = rest.indexOf('\\E', 2);
      const literal = end < 0 ? rest.slice(2) : rest.slice(2, end);
      // A repetition behind it repeats its last character.
      frame.total += literal.length;
      frame.last = 1;
      at += end < 0 ? rest.length : end + 2;
    } else if (head === '\\') {
      atom(1);
      at += LONG_ESCAPE.exec(rest)?.[0].length ?? 1;
    } else if (head === '[') {
      atom(1);
      at += classLength(rest);
    } else if (head === '(') {
      const opened = GROUP_HEAD.exec(rest)?.[0] ?? '(';
      at += opened.length;
      // Flags for what follows: no group.
      if (opened.endsWith(')')) continue;
      frames.push(frame);
      frame = { total: 2, last: 0 };
    } else if (head === ')') {
      const { total } = frame;
      frame = frames.pop() ?? { total: 2, last: 0 };
      atom(total);
      at += 1;
    } else {
      if (head === '|') atom(1);
      else if (head === '*' || head === '+' || head === '?') addTo(frame, 1);
      else atom(1);
      at += 1;
    }
  }
  return frames.reduce((sum, { total }) => sum + total, frame.total);
}

function addTo(frame: Frame, size: number): void {
  frame.total += size;
  frame.last += size;
}

function repeat(frame: Frame, min: number, comma: string | undefined, maxText: string | undefined): void {
  const isOpen = comma !== undefined && maxText === '';
  const max = comma === undefined ? min : isOpen ? Math.max(min, 1) : Number(maxText);
  // Each time once more, and a branch for each that may be missing.
  const size = Math.max(1, max) * frame.last + (isOpen ? 1 : Math.max(0, max - min));
  frame.total += size - frame.last;
  frame.last = size;
}

/** Characters of a class in brackets; a bracket that is never closed reaches to the end. */
function classLength(text: string): number {
  let at = text[1] === '^' ? 2 : 1;
  // First in a class, a closing bracket is a member of it.
  if (text[at] === ']') at += 1;
  while (at < text.length && text[at] !== ']') {
    const named = text.startsWith('[:', at) ? text.indexOf(':]', at) : -1;
    if (named > 0) at = named + 2;
    else at += text[at] === '\\' ? (LONG_ESCAPE.exec(text.slice(at))?.[0].length ?? 1) : 1;
  }
  return at + 1;
}
