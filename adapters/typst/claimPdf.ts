import { claimDocument } from '../../domain/claims/evidence/claimDocument.js';
import type { ClaimEvidence } from '../../domain/claims/evidence/claimEvidence.js';
import { parseInstant } from '../../domain/period.js';
import { CLAIM_TEMPLATE, dayChart } from './claimTemplate.js';
import type { Renderer } from './renderer.js';

/**
 * Renders a claim's document from its frozen evidence; equal evidence results in equal bytes. Error: document_failed.
 */
export async function renderClaimPdf(
  renderer: Pick<Renderer, 'render'>,
  evidence: ClaimEvidence,
): Promise<Buffer> {
  const document = claimDocument(evidence);
  const date = evidence.generated_at.slice(0, 10).split('-').map(Number);
  return renderer.render({
    template: CLAIM_TEMPLATE,
    data: { ...document, chart: document.chartDays.length > 0 ? dayChart(document.chartDays) : '', date },
    createdSeconds: Number((parseInstant(evidence.generated_at)?.micros ?? 0n) / 1_000_000n),
  });
}
