import { parseInstant } from '../../domain/period.js';
import type { ReportDocument } from '../../domain/reports/reportDocument.js';
import { drawChart } from './charts.js';
import type { Renderer } from './renderer.js';
import { REPORT_TEMPLATE } from './reportTemplate.js';

interface ReportOptions {
  /** PNG; undefined: none. */
  logo: Buffer | undefined;
  /** RFC 3339. */
  generatedAt: string;
}

/** Typesets reports with a renderer. */
export const reportRendererOf =
  (renderer: Pick<Renderer, 'render'>) =>
  (document: ReportDocument, options: ReportOptions): Promise<Buffer> =>
    renderReportPdf(renderer, document, options);

/** Typesets a management report as PDF/UA-1, with its logo if any. Error: document_failed. */
export async function renderReportPdf(
  renderer: Pick<Renderer, 'render'>,
  document: ReportDocument,
  { logo, generatedAt }: ReportOptions,
): Promise<Buffer> {
  const sections = document.sections.map(({ chart, ...section }) => ({
    ...section,
    chart: chart && {
      title: chart.title,
      alt: chart.alt,
      ...drawChart(chart.drawing, document.brandTextColor),
    },
  }));
  return renderer.render({
    template: REPORT_TEMPLATE,
    standard: 'ua-1',
    data: { ...document, sections, logo: logo ? [...logo] : '' },
    createdSeconds: Number((parseInstant(generatedAt)?.micros ?? 0n) / 1_000_000n),
  });
}
