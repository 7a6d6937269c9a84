import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { PROJECT_ROOT } from '../../../../platform/projectRoot.js';
import { startPython } from '../../../support/python.js';

const FOLDER = 'test/sdk/python/unit';
const FILES = readdirSync(join(PROJECT_ROOT, FOLDER)).filter((name) => /^test_\w+\.py$/.test(name));

/** The package's unit tests, by this interpreter. */
export function describeUnits(name: string, python: () => string): void {
  describe(`the unit tests of the Python package, ${name}`, () => {
    it.each(FILES)('%s passes', async (file) => {
      const program = startPython(python(), join(FOLDER, file), { PYTHONWARNINGS: 'error::ResourceWarning' });
      const status = await program.ended();
      expect(status, program.output()).toBe(0);
      expect(program.output()).toMatch(/^Ran [1-9]\d* tests? in /m);
    });
  });
}
