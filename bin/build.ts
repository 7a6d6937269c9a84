import { existsSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundleWorkflowCode } from '@temporalio/worker';
import { createLogger } from '../platform/logger.js';

/** The folder that holds the built files: this program's own parent. */
const OUT_DIR = dirname(dirname(fileURLToPath(import.meta.url)));

/**
 * The second part of a build, after the compiler: bundles the workflows into one file, so that no worker bundles at its
 * start.
 */
const workflows = join(OUT_DIR, 'workflows/index.js');
if (existsSync(workflows)) {
  const logger = createLogger({ name: 'build', level: 'warn' });
  const { code } = await bundleWorkflowCode({
    workflowsPath: workflows,
    logger: {
      log: () => undefined,
      trace: () => undefined,
      debug: () => undefined,
      info: () => undefined,
      warn: (message, meta) => logger.warn(meta ?? {}, message),
      error: (message, meta) => logger.error(meta ?? {}, message),
    },
  });
  writeFileSync(join(OUT_DIR, 'workflow-bundle.js'), code);
}
