import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { PROJECT_ROOT } from '../../../platform/projectRoot.js';

/** The checker of packs shares no code with their producer. */
it('the program that checks packs imports nothing but itself and Node', () => {
  const folder = join(PROJECT_ROOT, 'bin/evidence');
  const files = readdirSync(folder).map((name) => join(folder, name));
  const imports = files.flatMap((file) =>
    [...readFileSync(file, 'utf8').matchAll(/from '([^']+)'/g)].map(([, specifier = '']) => specifier),
  );
  expect(imports.length).toBeGreaterThan(10);
  expect(imports.filter((one) => !/^(node:|\.\/[A-Za-z]+\.js$)/.test(one))).toEqual([]);
});
