/** Syntax of other engines that RE2 leaves out, by the part of a pattern at which RE2 stops. */
const UNSUPPORTED: readonly (readonly [part: RegExp, name: string])[] = [
  [/^\(\?<[=!]/, 'look-behind'],
  [/^\(\?[=!]/, 'look-ahead'],
  [/^\\[1-9]/, 'back-references'],
  [/^\\[kg]/, 'back-references'],
  [/^\(\?P=/, 'back-references'],
  [/^\(\?>/, 'atomic groups'],
  [/^[*+?}]\+/, 'possessive repetition'],
  [/^\(\?\(/, 'conditions'],
  [/^\(\?(?:R|&|P>|[+-]?\d)/, 'recursion'],
  [/^\(\?#/, 'comments'],
  [/^\(\?\|/, 'branch reset groups'],
];

/**
 * The construct that RE2 does not support at the part of a pattern at which it stopped, with the part as it is written;
 * undefined when the pattern is wrong in every engine. RE2 names some parts too shortly (`(?P`), so every place of the
 * pattern that begins like the part is looked at.
 */
export function findUnsupportedSyntax(
  pattern: string,
  stoppedAt: string,
): { name: string; part: string } | undefined {
  for (let at = pattern.indexOf(stoppedAt); at >= 0; at = pattern.indexOf(stoppedAt, at + 1)) {
    for (const [part, name] of UNSUPPORTED) {
      const found = part.exec(pattern.slice(at));
      if (found) return { name, part: found[0] };
    }
  }
  return undefined;
}
