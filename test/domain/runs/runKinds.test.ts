import { describe, expect, it } from 'vitest';
import {
  describeRun,
  RUN_KINDS,
  RUN_MESSAGES,
  readRunMessage,
  runMessage,
  runWorkflowId,
  runWorkflowInput,
} from '../../../domain/runs/runKinds.js';

const RUN = { orgId: 'org', id: 'id' };

describe('the description of runs', () => {
  it('keeps the names of workflows, which rows, schedules and histories hold', () => {
    const names = RUN_KINDS.map((kind) => [
      kind,
      describeRun(kind).workflow.type,
      runWorkflowId(kind, RUN),
      runWorkflowInput(kind, RUN),
    ]);
    expect(names).toEqual([
      ['gap_run', 'gapRun', 'gap:org:id', { orgId: 'org', runId: 'id' }],
      ['billing_import', 'billingImport', 'import:org:id', { orgId: 'org', importId: 'id' }],
      ['billing_sync', 'billingSync', 'sync-run:org:id', { orgId: 'org', runId: 'id' }],
      ['reprice', 'repricing', 'reprice:org:id', { orgId: 'org', runId: 'id' }],
      ['savings_run', 'savingsRun', 'savings:org:id', { orgId: 'org', runId: 'id' }],
      ['invoice_run', 'invoicePipeline', 'invoice:org:id', { orgId: 'org', runId: 'id' }],
      ['report', 'managementReport', 'report:org:id', { orgId: 'org', runId: 'id' }],
    ]);
  });

  it('derives from a message which run it starts or stops', () => {
    for (const message of RUN_MESSAGES) {
      const about = readRunMessage(message);
      expect(about && runMessage(about.kind, about.verb)).toBe(message);
    }
    for (const other of ['webhook.deliver', 'claim.wake', 'weights.recompute', 'gap_run', 'toString.start'])
      expect(readRunMessage(other), other).toBeUndefined();
  });

  it('refuses to stop a run that cannot be stopped', () => {
    expect(() => runMessage('billing_import', 'cancel')).toThrow(TypeError);
  });
});
