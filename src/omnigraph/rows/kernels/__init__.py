"""The functions of values, a column at a time.

In: the name of a function, and its arguments as Arrow columns or, where no row changes them, as
scalars. Out: a column of the type of the result. Guarantee: a fault (a division by zero, an
overflow, an impossible conversion) is null and never an error, and every value depends on its own
row only.

    function_call      a call: its arguments as columns, numbers and texts
    number_kernels     arithmetic and the functions of numbers
    choice_kernels     the first value, the least one, the one of a condition
    moments            dates and times as numbers, and columns of them
    conversion_kernels a value of one type made of a value of another
    text_kernels       functions of texts
    pattern_kernels    functions of patterns
    date_kernels       functions of dates and times
    list_kernels       functions of lists
    vector_kernels     functions of vectors
    highlight_kernel   texts with the words of a query marked
    function_kernels   which kernel a function has, and calls of it
"""
