import { z } from 'zod';
import type { GeneratedReport, Report } from '../../../db/reports/reports.js';
import { invalidField } from '../../../domain/errors.js';
import { publicId } from '../../../domain/ids.js';
import { isoFromMicros, parseInstant } from '../../../domain/period.js';
import {
  daysOfPeriod,
  REPORT_CAUSES,
  REPORT_DAYS_MAX,
  REPORT_SECTIONS,
  type ReportPeriod,
} from '../../../domain/reports/report.js';
import { CADENCES } from '../../../domain/reports/schedule.js';
import type { Access } from '../../endpoint.js';
import { offsetParameters, pageFields } from '../../paging.js';
import {
  presentProgress,
  presentRunEnd,
  progressSchema,
  runEndFields,
  runStatusSchema,
} from '../../runs/runWire.js';

export const REPORTS_PATH = '/api/v1/reports';
export const REPORT_RUNS_PATH = `${REPORTS_PATH}/runs`;
export const REPORT_TAG = 'Reports';
export const REPORT_READ: Access = { scope: 'reports:read', workspace: 'refused' };
export const REPORT_WRITE: Access = { scope: 'reports:write', workspace: 'refused' };

const dayField = (description: string) =>
  z
    .string({ error: 'must be a date such as 2026-10-01' })
    .refine((text) => /^\d{4}-\d{2}-\d{2}$/.test(text) && parseInstant(text) !== undefined, {
      error: 'must be a date such as 2026-10-01',
    })
    .meta({ format: 'date', description });

export const sectionsField = z
  .array(z.enum(REPORT_SECTIONS), { error: 'must be a list of sections' })
  .min(1, { error: 'must name a section, or leave it out for all of them' })
  .max(100, { error: 'must have at most 100 sections' })
  .meta({ description: 'All five where absent; repeated ones count once, and the order is fixed' });

export const reportBody = z
  .strictObject({
    from: dayField('First UTC day'),
    to: dayField('Last UTC day, included'),
    sections: sectionsField.nullish(),
  })
  .meta({ id: 'ReportRequest' });

/** The period of a request. Error invalid_range. */
export function periodOfBody({ from, to }: z.output<typeof reportBody>): ReportPeriod {
  if (from > to) throw invalidField('body', 'from', 'must not lie after to; swap them', 'invalid_range');
  const period = { fromDay: from, toDay: to };
  if (daysOfPeriod(period) > REPORT_DAYS_MAX)
    throw invalidField('body', 'to', `must lie at most ${REPORT_DAYS_MAX} days after from`, 'invalid_range');
  return period;
}

/** Whether the header Prefer asks for an answer at once (RFC 7240). */
export function prefersAsync(header: string | undefined): boolean {
  return (header ?? '')
    .split(',')
    .some((word) => word.trim().split(';')[0]?.toLowerCase() === 'respond-async');
}

export const reportParams = z.object({ report_id: z.string() });

const reportSchema = z
  .strictObject({
    id: z.string().meta({ example: 'rpt_0199f3a2c4d57e3a8f00112233445566' }),
    period_from: z.string(),
    period_to: z.string(),
    sections: z.array(z.enum(REPORT_SECTIONS)),
    generated_at: z.string(),
    expires_at: z.string(),
    size_bytes: z.int(),
  })
  .meta({ id: 'Report' });

export const listReportsQuery = z.object({ ...offsetParameters() });
export const listReportsResponse = z.strictObject({ reports: z.array(reportSchema), ...pageFields });

export function presentReport(report: GeneratedReport): z.output<typeof reportSchema> {
  return {
    id: publicId('rpt', report.id),
    period_from: report.periodFrom,
    period_to: report.periodTo,
    sections: report.sections,
    generated_at: isoFromMicros(report.generatedAtMicros),
    expires_at: isoFromMicros(report.expiresAtMicros),
    size_bytes: report.sizeBytes,
  };
}

/** The headers of the document itself. */
export function documentHeaders(report: GeneratedReport, sizeBytes: number): Record<string, string> {
  return {
    'X-Report-Id': publicId('rpt', report.id),
    'Content-Disposition': `attachment; filename="management-report-${report.periodFrom}-${report.periodTo}.pdf"`,
    'Content-Length': String(sizeBytes),
  };
}

export const reportRunSchema = z
  .strictObject({
    id: z.string().meta({ example: 'run_0199f3a2c4d57e3a8f00112233445566' }),
    run_id: z.string(),
    kind: z.literal('report'),
    status: runStatusSchema,
    period_from: z.string(),
    period_to: z.string(),
    sections: z.array(z.enum(REPORT_SECTIONS)),
    cause: z.enum(REPORT_CAUSES),
    cadence: z.enum(CADENCES).nullable().meta({ description: 'Of the schedule that it is of' }),
    progress: progressSchema.meta({ description: 'Of one document' }),
    result: z
      .strictObject({ report_id: z.string(), report_url: z.string(), expires_at: z.string() })
      .nullable()
      .meta({ description: 'Null until the report is generated' }),
    ...runEndFields('The report of the same Idempotency-Key'),
  })
  .meta({ id: 'ReportRun' });

export const listReportRunsQuery = z.object({ status: runStatusSchema.optional(), ...offsetParameters() });
export const listReportRunsResponse = z.strictObject({ runs: z.array(reportRunSchema), ...pageFields });

export const reportRunUrl = (id: string): string => `${REPORT_RUNS_PATH}/${publicId('run', id)}`;

export function presentReportRun(run: Report): z.output<typeof reportRunSchema> {
  const id = publicId('run', run.id);
  const reportId = publicId('rpt', run.id);
  return {
    id,
    run_id: id,
    kind: 'report',
    status: run.status,
    period_from: run.periodFrom,
    period_to: run.periodTo,
    sections: run.sections,
    cause: run.cause,
    cadence: run.cadence,
    progress: presentProgress({ ...run, done: run.status === 'succeeded' ? 1 : 0, total: 1 }),
    result:
      run.expiresAtMicros === null
        ? null
        : {
            report_id: reportId,
            report_url: `${REPORTS_PATH}/${reportId}`,
            expires_at: isoFromMicros(run.expiresAtMicros),
          },
    ...presentRunEnd(run, reportRunUrl(run.id)),
  };
}
