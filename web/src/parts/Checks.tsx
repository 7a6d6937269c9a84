import type { ReactNode } from 'react';
import { Checkbox as AriaCheckbox, CheckboxGroup, Label } from 'react-aria-components';
import css from './Checks.module.css';
import type { Option } from './forms/Fields';

/** One choice of yes or no. */
export function Checkbox({
  isSelected,
  onChange,
  isDisabled,
  children,
}: {
  isSelected: boolean;
  onChange: (isSelected: boolean) => void;
  isDisabled?: boolean;
  children: ReactNode;
}) {
  return (
    <AriaCheckbox className={css.check} isSelected={isSelected} isDisabled={isDisabled} onChange={onChange}>
      {({ isSelected: isOn }) => (
        <>
          <span className={css.box} aria-hidden="true">
            {isOn ? '✓' : ''}
          </span>
          {children}
        </>
      )}
    </AriaCheckbox>
  );
}

/** Any number of values. */
export function CheckGroup<T extends string>({
  label,
  values,
  options,
  onChange,
  error,
}: {
  label: string;
  values: readonly T[];
  options: readonly Option<T>[];
  onChange: (values: T[]) => void;
  error?: string | undefined;
}) {
  return (
    <CheckboxGroup className={css.group} value={[...values]} onChange={(next) => onChange(next as T[])}>
      <Label className={css.label}>{label}</Label>
      <div className={css.columns}>
        {options.map((option) => (
          <AriaCheckbox key={option.value} value={option.value} className={css.check}>
            {({ isSelected }) => (
              <>
                <span className={css.box} aria-hidden="true">
                  {isSelected ? '✓' : ''}
                </span>
                {option.label}
              </>
            )}
          </AriaCheckbox>
        ))}
      </div>
      {error && <span className={css.error}>{error}</span>}
    </CheckboxGroup>
  );
}
