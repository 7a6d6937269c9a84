import { counted, dayText, listed, shortened, timeText } from '../claims/evidence/documentTexts.js';
import { dayOf, isoFromMicros } from '../period.js';
import { textColor } from './branding.js';
import { enforcementSection } from './enforcementSection.js';
import type { ReportFigures } from './figures.js';
import { reconciliationSection } from './reconciliationSection.js';
import { daysOfPeriod, type ReportSection } from './report.js';
import { type DocumentSection, periodText } from './sectionParts.js';
import { spendSection } from './spendSection.js';
import { summarySection } from './summarySection.js';
import { violationsSection } from './violationsSection.js';

/** The look of an organization's reports. */
export interface ReportBranding {
  /** Shown on the cover. */
  orgName: string;
  /** `#RRGGBB`, of which lines of the cover and of charts are drawn. */
  brandColor: string;
  /** At the foot of every page. */
  footerText: string;
}

/** The text of a management report: every number as it is shown, so that the template does no arithmetic. */
export interface ReportDocument {
  title: string;
  organization: string;
  footer: string;
  brandColor: string;
  /** The same, as dark as text must be. */
  brandTextColor: string;
  period: string;
  /** Year, month and day on which it was generated. */
  date: readonly number[];
  facts: readonly { name: string; value: string }[];
  /** The reason why its figures may still change; '' where there is none. */
  provisional: string;
  notes: readonly string[];
  sections: readonly DocumentSection[];
}

const SECTIONS: Readonly<Record<ReportSection, (figures: ReportFigures) => DocumentSection>> = {
  summary: summarySection,
  spend: spendSection,
  violations: violationsSection,
  enforcement: enforcementSection,
  reconciliation: reconciliationSection,
};

const NAME_CHARS = 120;
const FOOTER_CHARS = 110;

export function reportDocument(
  figures: ReportFigures,
  sections: readonly ReportSection[],
  branding: ReportBranding,
): ReportDocument {
  const { period, previous, asOfMicros } = figures;
  const today = dayOf(asOfMicros);
  const shown = sections.map((section) => SECTIONS[section](figures));
  const days = daysOfPeriod(period);
  return {
    title: 'Management report',
    organization: shortened(branding.orgName, NAME_CHARS),
    footer: shortened(branding.footerText, FOOTER_CHARS),
    brandColor: branding.brandColor,
    brandTextColor: textColor(branding.brandColor),
    period: periodText(period),
    date: today.split('-').map(Number),
    facts: [
      { name: 'Period', value: `${periodText(period)} (${counted(days, 'day')}, UTC)` },
      { name: 'Compared with', value: `${periodText(previous)} (${counted(days, 'day')} before)` },
      { name: 'Figures as of', value: `${timeText(isoFromMicros(asOfMicros))} UTC` },
      { name: 'Contains', value: listed(shown.map(({ title }) => title.toLowerCase())) },
    ],
    provisional:
      period.toDay < today
        ? ''
        : `Provisional: the period ends on ${dayText(period.toDay)}, and the figures are those up to now.`,
    notes: [
      'Amounts are US dollars, rounded to cents once; the rows of a table add up to its total.',
      'Changes compare with the period of equal length before. The API answers the same figures for the same period.',
    ],
    sections: shown,
  };
}
