/** Why a savings run was opened. */
export const SAVINGS_CAUSES = ['request', 'rule_change', 'schedule'] as const;
export type SavingsCause = (typeof SAVINGS_CAUSES)[number];
