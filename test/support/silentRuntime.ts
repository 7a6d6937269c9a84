import { makeTelemetryFilterString, type RuntimeOptions } from '@temporalio/worker';

const silent = () => undefined;

/** Takes whatever Temporal's SDK says, and says nothing. */
export const SILENT = {
  log: silent,
  trace: silent,
  debug: silent,
  info: silent,
  warn: silent,
  error: silent,
};

/** Nothing of the native core is printed between the tests' own lines: it goes to the logger, which is silent. */
export const SILENT_RUNTIME: RuntimeOptions = {
  logger: SILENT,
  telemetryOptions: {
    logging: { forward: {}, filter: makeTelemetryFilterString({ core: 'WARN', other: 'WARN' }) },
  },
};
