import { parseArgs } from 'node:util';

/**
 * Reads whole-number and yes/no flags of a bench: `--rounds 3`, `--no-gate`. Ends the program with a message for
 * an unknown flag or an invalid number.
 */
export function readFlags<N extends Record<string, number>, S extends Record<string, boolean>>(
  numbers: N,
  switches: S,
): { [K in keyof N]: number } & { [K in keyof S]: boolean } {
  const options = Object.fromEntries([
    ...Object.keys(numbers).map((name) => [name, { type: 'string' }] as const),
    ...Object.keys(switches).map((name) => [name, { type: 'boolean' }] as const),
  ]);
  const flags: Record<string, number | boolean> = { ...numbers, ...switches };
  try {
    const { values } = parseArgs({ options });
    for (const [name, value] of Object.entries(values)) {
      if (typeof value === 'string' && !/^\d+(?:_\d+)*$/.test(value))
        throw new Error(`--${name} takes a whole number`);
      flags[name] = typeof value === 'string' ? Number(value.replaceAll('_', '')) : value === true;
    }
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    process.exit(2);
  }
  return flags as { [K in keyof N]: number } & { [K in keyof S]: boolean };
}
