import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DOCUMENTED, describeDemo } from '../lab/demo/describe.js';
import { generateDemo } from '../lab/demo/generateDemo.js';
import { runMain } from '../platform/processMain.js';
import { PROJECT_ROOT } from '../platform/projectRoot.js';

/** Writes docs/demo.md from the demo's answer key. */
await runMain(async () => {
  writeFileSync(join(PROJECT_ROOT, 'docs/demo.md'), describeDemo(generateDemo(DOCUMENTED)));
});
