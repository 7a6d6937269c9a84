/** The versions of FOCUS (FinOps Open Cost and Usage Specification) that are written. */
export const FOCUS_EXPORT_VERSIONS = ['1.2', '1.4'] as const;
export type FocusExportVersion = (typeof FOCUS_EXPORT_VERSIONS)[number];

/** ChargeCategory as FOCUS allows it since 1.0. */
export const FOCUS_CATEGORIES = ['Usage', 'Purchase', 'Tax', 'Credit', 'Adjustment'] as const;
export type FocusCategory = (typeof FOCUS_CATEGORIES)[number];

/** FOCUS 1.2, ServiceCategory and the subcategory of it that language models belong to. */
export const FOCUS_SERVICE_CATEGORY = 'AI and Machine Learning';
export const FOCUS_SERVICE_SUBCATEGORY = 'Generative AI';
