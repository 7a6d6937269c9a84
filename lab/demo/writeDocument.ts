import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { runMain } from '../../platform/processMain.js';
import { PROJECT_ROOT } from '../../platform/projectRoot.js';
import { DOCUMENTED, describeDemo } from './describe.js';
import { generateDemo } from './generateDemo.js';

/** Writes docs/demo.md from the demo's answer key. */
await runMain(async () => {
  writeFileSync(join(PROJECT_ROOT, 'docs/demo.md'), describeDemo(generateDemo(DOCUMENTED)));
});
