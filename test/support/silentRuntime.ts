import { makeTelemetryFilterString, type RuntimeOptions } from '@temporalio/worker';

const silent = () => undefined;

/** Discards all messages of Temporal's SDK. */
export const SILENT = {
  log: silent,
  trace: silent,
  debug: silent,
  info: silent,
  warn: silent,
  error: silent,
};

/** Keeps the native core's messages out of the tests' output: they go to the silent logger. */
export const SILENT_RUNTIME: RuntimeOptions = {
  logger: SILENT,
  telemetryOptions: {
    logging: { forward: {}, filter: makeTelemetryFilterString({ core: 'WARN', other: 'WARN' }) },
  },
};
