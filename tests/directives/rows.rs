//! Which test shows what of hiCUDA's directives: what the paper and its slides say of each (H1 to H37), and what else its text
//! has (P1 to P11), after Han and Abdelrahman, "hiCUDA: High-Level GPGPU Programming" (IEEE TPDS 22(1), 2011).

use std::path::Path;

/// The file of a test, from the folder of the repository, and its name; of a program that rustc refuses, the file alone.
type Shown = (&'static str, &'static str);

const OFFLOAD: &str = "tests/suite/rust_offload.rs";
const SUITE: &str = "tests/suite/directives.rs";
const DATA: &str = "tests/suite/directives_data.rs";
const FORMS: &str = "tests/suite/directives_forms.rs";
const SHARED: &str = "tests/suite/directives_shared.rs";
const ARRAYS: &str = "tests/suite/directives_arrays.rs";
const CONSTANTS: &str = "tests/suite/directives_constants.rs";
const COPYOUT: &str = "tests/suite/directives_copyout.rs";
const REDUCTIONS: &str = "tests/suite/directives_reductions.rs";
const PROGRAMS: &str = "tests/suite/directives_programs.rs";
const LAUNCHED: &str = "tests/directives/launched.rs";
const ORDER: &str = "tests/directives/order.rs";
const PLACEMENT: &str = "tests/directives/placement.rs";
const COSTS: &str = "tests/directives/schedules.rs";
const STAGED: &str = "tests/staged.rs";
const SECTIONS: &str = "directives/src/section/tests.rs";

/// A row: its number, what it says, and what shows it.
const ROWS: &[(&str, &str, &[Shown])] = &[
    (
        "H1",
        "a region becomes a kernel of a name and a launch, whose extents are expressions",
        &[
            (LAUNCHED, "a_region_is_a_kernel"),
            (REDUCTIONS, "histograms"),
        ],
    ),
    (
        "H2",
        "grids of any number of dimensions, the last one fastest; at most 1024 threads",
        &[
            (SUITE, "grids_of_any_dimensions"),
            (SHARED, "grids_of_four_dimensions"),
            (LAUNCHED, "a_region_is_a_kernel"),
            (PLACEMENT, "too_many_threads"),
        ],
    ),
    (
        "H3",
        "the host waits, unless a kernel is `nowait`; copies wait for it",
        &[
            (
                "jit-core/tests/cuda_driver/regions.rs",
                "the_host_waits_for_kernels",
            ),
            (FORMS, "nothing_said_of_data"),
        ],
    ),
    (
        "H4",
        "scalars that are read are parameters, and those that are written are refused",
        &[
            (OFFLOAD, "scalars_are_passed"),
            ("tests/refused/offload/written_scalar.rs", ""),
        ],
    ),
    (
        "H5",
        "`loop_partition` has a clause",
        &[
            (PLACEMENT, "neither_clause"),
            ("tests/refused/offload/neither_clause.rs", ""),
        ],
    ),
    (
        "H6",
        "levels of nests, which siblings share",
        &[(SUITE, "loops_of_figure_6")],
    ),
    (
        "H7",
        "`over_tblock`: chunks of ceil(N / B), or each Bth iteration",
        &[
            (SUITE, "each_iteration_has_its_thread"),
            (SUITE, "loops_that_count_down"),
            (SUITE, "bounds_of_outer_loops"),
            (SUITE, "indices_of_all_integers"),
        ],
    ),
    (
        "H8",
        "`over_thread`: each Tth iteration, neighbours with neighbouring ones",
        &[
            (SUITE, "each_iteration_has_its_thread"),
            (COSTS, "costs_are_told_as_numbers"),
        ],
    ),
    (
        "H9",
        "both: batches of blocks, the slide's table",
        &[(SUITE, "batches_of_figure_4")],
    ),
    (
        "H10",
        "guards that no barrier and no copy is within",
        &[
            (SUITE, "barriers_in_batches"),
            (SUITE, "inner_counters_of_batches"),
            (SHARED, "groups_at_the_edge"),
        ],
    ),
    (
        "H11",
        "nests that are not perfect",
        &[(SUITE, "imperfect_nests")],
    ),
    (
        "H12",
        "`singular`: one thread of each block, no partition within, no barrier implied",
        &[
            (SUITE, "one_thread_of_each_block"),
            ("tests/refused/offload/partition_in_singular.rs", ""),
            (ORDER, "no_barrier_behind_singular"),
        ],
    ),
    (
        "H13",
        "`barrier`: for the threads of each block",
        &[
            (SUITE, "barriers_in_nests"),
            (ORDER, "a_barrier_is_for_one_block"),
        ],
    ),
    (
        "H14",
        "partitions in functions that are called",
        &[(SUITE, "partitions_in_called_functions")],
    ),
    (
        "H15",
        "expressions and constants of the host in clauses",
        &[
            (OFFLOAD, "products_of_matrices"),
            (REDUCTIONS, "histograms"),
        ],
    ),
    (
        "H16",
        "`global alloc` with a section that is copied in, or cleared",
        &[
            (DATA, "sections_of_a_matrix"),
            (DATA, "zeros_on_the_device"),
        ],
    ),
    (
        "H17",
        "`global copyout`, `to` another slice of the same shape",
        &[
            (DATA, "sections_over_others"),
            (DATA, "elements_outside_are_refused"),
        ],
    ),
    (
        "H18",
        "`global free`; data stay over launches",
        &[
            (DATA, "memory_that_is_let_go"),
            (OFFLOAD, "data_stays_on_the_device"),
            (OFFLOAD, "steps_of_jacobi"),
        ],
    ),
    (
        "H19",
        "sections of several dimensions, and how many bytes are copied",
        &[(DATA, "sections_of_planes"), (DATA, "sections_of_a_matrix")],
    ),
    (
        "H20",
        "accesses go to the device's copy that is visible",
        &[
            (DATA, "memory_that_is_let_go"),
            (DATA, "what_is_written_before_alloc_stays"),
            ("tests/refused/offload/shadowed_slice.rs", ""),
        ],
    ),
    (
        "H21",
        "`constant copyin` and `remove`, at most 64 KiB, read only",
        &[
            (CONSTANTS, "weights_of_windows"),
            (CONSTANTS, "constants_that_change"),
            (CONSTANTS, "constants_without_room"),
            (
                "tests/constants.rs",
                "constants_are_read_where_the_launch_has_put_them",
            ),
            ("tests/refused/offload/constant_copied_out.rs", ""),
        ],
    ),
    (
        "H22",
        "`shape` of slices, with extents of run time",
        &[
            (FORMS, "all_allocated_and_a_part_copied"),
            (CONSTANTS, "rows_of_a_shape"),
            ("tests/refused/offload/section_without_a_shape.rs", ""),
        ],
    ),
    (
        "H23",
        "sections of shared memory, merged over what a block executes at once; copied out, too",
        &[
            (SECTIONS, "sections_of_one_loop"),
            (SECTIONS, "sections_of_nests"),
            (SECTIONS, "random_sections_hold_what_is_read"),
            (COPYOUT, "sections_of_writes"),
            (COPYOUT, "iterations_side_by_side"),
        ],
    ),
    (
        "H24",
        "copies by all threads, in ceil(size / threads) rounds",
        &[
            (STAGED, "full_shares_have_no_guards"),
            (COPYOUT, "rows_that_are_padded"),
        ],
    ),
    (
        "H25",
        "halos, and bounds that are asked unless they are proved",
        &[
            (SHARED, "stencils_with_halos"),
            (SHARED, "ends_of_a_slice"),
            (STAGED, "proved_indices_are_not_checked"),
        ],
    ),
    (
        "H26",
        "arrays of the kernel in shared memory",
        &[
            (ARRAYS, "tables_of_each_block"),
            (ARRAYS, "tiles_turned_round"),
        ],
    ),
    (
        "H27",
        "barriers that are missing around what is shared",
        &[("tests/block_arrays.rs", "no_barrier_before_others_read")],
    ),
    (
        "H28",
        "global and constant data outside of kernels, the rest inside",
        &[
            ("tests/refused/offload/global_in_a_region.rs", ""),
            ("tests/refused/offload/constant_in_a_region.rs", ""),
            ("tests/refused/offload/shared_outside.rs", ""),
            ("tests/refused/offload/partition_outside.rs", ""),
            ("tests/refused/offload/singular_outside.rs", ""),
            ("tests/refused/offload/barrier_outside.rs", ""),
        ],
    ),
    (
        "H29",
        "in the place of textures, reads of memory that does not change",
        &[(LAUNCHED, "a_region_is_a_kernel")],
    ),
    (
        "H30",
        "all of this in one program",
        &[
            (PROGRAMS, "matmul_tiled"),
            ("tests/suite/directives_random.rs", "random_nests"),
        ],
    ),
    (
        "H31",
        "no more shared memory than the section, and storage that is used again",
        &[
            (SECTIONS, "random_sections_hold_what_is_read"),
            (ARRAYS, "arrays_one_after_the_other"),
        ],
    ),
    (
        "H32",
        "data that are used and not there",
        &[
            (DATA, "elements_outside_are_refused"),
            (DATA, "sections_that_are_not_there"),
            (OFFLOAD, "elements_that_the_host_keeps"),
            (
                "tests/suite/directives_private.rs",
                "what_iterations_had_is_gone",
            ),
        ],
    ),
    (
        "H33",
        "loops whose order matters",
        &[
            (ORDER, "an_earlier_element"),
            (ORDER, "siblings_that_are_distributed_differently"),
            (ORDER, "a_sum_in_a_variable"),
            (ORDER, "random_nests_are_verified_as_by_trial"),
        ],
    ),
    (
        "H34",
        "guidance: accesses that are not coalesced",
        &[(COSTS, "costs_are_told_as_numbers")],
    ),
    (
        "H35",
        "guidance: conflicts of banks",
        &[
            (COSTS, "costs_are_told_as_numbers"),
            (STAGED, "rows_are_padded_where_a_warp_reads_a_column"),
        ],
    ),
    (
        "H36",
        "rows that are padded against them",
        &[
            (STAGED, "rows_are_padded_where_a_warp_reads_a_column"),
            (ARRAYS, "transposed_through_rows"),
        ],
    ),
    (
        "H37",
        "loop transformations, reductions, scans, data without directives",
        &[
            (
                "tests/directives/transformed.rs",
                "iterations_side_by_side_are_verified_as_by_trial",
            ),
            (
                "tests/directives/interchanged.rs",
                "interchanged_loops_are_verified_as_by_trial",
            ),
            (
                "tests/suite/directives_peeled.rs",
                "all_iterations_are_there",
            ),
            ("tests/suite/directives_private.rs", "medians"),
            (REDUCTIONS, "lanes_that_combine"),
            ("tests/suite/directives_scans.rs", "sums_up_to_each"),
            (FORMS, "nothing_said_of_data"),
        ],
    ),
    (
        "P1",
        "directives are words of one spelling, and variables in them are visible",
        &[
            ("tests/refused/offload/shares_in_lower_case.rs", ""),
            ("tests/refused/offload/shared_variable.rs", ""),
        ],
    ),
    (
        "P2",
        "data directives act where they stand, on the slice's last `alloc`",
        &[
            (DATA, "memory_that_is_let_go"),
            (DATA, "what_is_written_before_alloc_stays"),
        ],
    ),
    (
        "P3",
        "sections with one index",
        &[(DATA, "sections_of_planes")],
    ),
    (
        "P4",
        "dimensions without a partition repeat iterations",
        &[
            (SUITE, "loops_of_figure_6"),
            (ORDER, "what_all_threads_repeat"),
        ],
    ),
    (
        "P5",
        "partitions deeper than the grid",
        &[
            (PLACEMENT, "a_partition_deeper_than_the_grid"),
            (PLACEMENT, "threads_deeper_than_the_block"),
        ],
    ),
    (
        "P6",
        "arrays of the kernel are not copied",
        &[("tests/refused/offload/shared_array_copied.rs", "")],
    ),
    (
        "P7",
        "extents in clauses of loops, as the slides have them; `alloc` of all with a part copied in",
        &[
            ("tests/refused/offload/blocks_of_a_loop.rs", ""),
            ("tests/refused/offload/threads_of_a_loop.rs", ""),
            (FORMS, "all_allocated_and_a_part_copied"),
        ],
    ),
    (
        "P8",
        "last chunks that are short, staged by batches",
        &[(FORMS, "short_last_chunks_are_staged")],
    ),
    (
        "P9",
        "what a whole program copies, and not its kernels alone",
        &[
            (FORMS, "what_a_whole_program_copies"),
            (OFFLOAD, "steps_of_jacobi"),
        ],
    ),
    (
        "P10",
        "what was changed by hand is said in directives",
        &[
            (LAUNCHED, "loops_are_those_of_the_sequential_program"),
            (PROGRAMS, "coulomb"),
            (PROGRAMS, "tpacf"),
        ],
    ),
    (
        "P11",
        "programs without data directives",
        &[(FORMS, "nothing_said_of_data")],
    ),
];

/// Each row has tests, and these are there.
#[test]
fn each_row_has_a_test() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    let root = root.expect("the tests are in a folder of the repository");
    for (row, says, shown) in ROWS {
        assert!(!shown.is_empty() && !says.is_empty(), "{row}");
        for (file, test) in *shown {
            let text = std::fs::read_to_string(root.join(file));
            let text = text.unwrap_or_else(|error| panic!("{row}: {file}: {error}"));
            let is_there = [
                format!("fn {test}("),
                format!("    {test}, ["),
                format!("    {test}, |"),
                format!("    {test}: \""),
            ];
            let is_there = test.is_empty() || is_there.iter().any(|form| text.contains(form));
            assert!(is_there, "{row}: {file} has no `{test}`");
        }
    }
    let count = |letter: &str| {
        ROWS.iter()
            .filter(|(row, ..)| row.starts_with(letter))
            .count()
    };
    assert_eq!((count("H"), count("P")), (37, 11));
}
