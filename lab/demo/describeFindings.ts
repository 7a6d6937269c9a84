/** The part of docs/demo.md about the engine's explanations of the planted faults. */
import type { AnswerKey } from './answerKey.js';
import { exact, type Fault } from './describeWords.js';
import type { PlantedFinding } from './findings.js';

function findingsOfFault(key: AnswerKey, { planted }: Fault): PlantedFinding[] {
  return key.findings.filter(({ fault }) => fault === planted);
}

/** A table row for each fault that the engine explains. */
export function explanationLines(key: AnswerKey, faults: readonly Fault[]): string[] {
  return faults.flatMap((fault) => {
    const findings = findingsOfFault(key, fault);
    const [first] = findings;
    if (!first) return [];
    const impact = findings.reduce((sum, { impactPico }) => sum + impactPico, 0n);
    return [
      `| ${fault.title} | \`${first.kind}\` | ${findings.length} | ${first.grade} | ${exact(impact)} |`,
    ];
  });
}

/** The command that shows the findings of a fault. */
export function explanationCommands(key: AnswerKey, fault: Fault): string[] {
  const [first] = findingsOfFault(key, fault);
  if (!first) return [];
  const fields = '{model, period_start, period_end, impact_usd_exact, confidence, reason}';
  return [`get '/financial/findings?kind=${first.kind}' | jq '.findings[] | ${fields}'`];
}
