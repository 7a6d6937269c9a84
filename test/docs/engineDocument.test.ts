import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';

const ROOT = path.resolve(import.meta.dirname, '../..');
const textOf = (file: string): string => readFileSync(path.join(ROOT, file), 'utf8');

it('docs/engine.md names tests that exist, each under the words of the test', () => {
  const rows = [...textOf('docs/engine.md').matchAll(/^\| [^|]+ \| `([\w/]+)`: ([^|]+) \|$/gm)];
  expect(rows.length).toBeGreaterThan(20);
  for (const [, file = '', name = ''] of rows) {
    const test = `test/domain/${file}.test.ts`;
    expect(existsSync(path.join(ROOT, test)), test).toBe(true);
    expect(textOf(test)).toContain(`'${name}'`);
  }
});
